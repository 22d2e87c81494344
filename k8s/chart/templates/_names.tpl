{{/* The run's name in the cluster: the release's, with "atoll" in it. */}}
{{- define "atoll.name" -}}
{{- if contains "atoll" .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-atoll" (.Release.Name | trunc 34 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{/* Labels that select pods. Call: dict "root" $ "component" "worker". */}}
{{- define "atoll.selector" -}}
app.kubernetes.io/name: atoll
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "atoll.podLabels" -}}
{{ include "atoll.selector" . }}
app.kubernetes.io/part-of: atoll
{{- end -}}

{{- define "atoll.labels" -}}
{{ include "atoll.podLabels" . }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end -}}

{{- define "atoll.run" -}}
{{- if .Values.run -}}{{ .Values.run }}{{- else -}}{{ .Files.Get "run.yaml" }}{{- end -}}
{{- end -}}

{{/* An image: dict "root" $ "image" "atoll/coordinator:0.1.0". */}}
{{- define "atoll.image" -}}
{{- if .root.Values.registry -}}{{ trimSuffix "/" .root.Values.registry }}/{{- end -}}{{ .image }}
{{- end -}}

{{- define "atoll.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "atoll.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "atoll.checks" -}}
{{- if and .Values.expose.enabled (not .Values.tls.enabled) -}}{{ fail "expose.enabled: the data port of an exposed run needs tls.enabled" }}{{- end -}}
{{- if and .Values.island.enabled (or (not .Values.island.name) (not .Values.island.coordinator)) -}}{{ fail "island.enabled needs island.name and island.coordinator" }}{{- end -}}
{{- if and .Values.tokens.enabled (eq .Values.worker.kind "Job") -}}{{ fail "tokens.enabled needs worker.kind StatefulSet: a Job's pods have random names" }}{{- end -}}
{{- end -}}
