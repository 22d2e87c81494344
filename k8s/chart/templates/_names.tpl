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

{{/* An image: dict "root" $ "image" "atoll/coordinator" "tag" "". Its first part is a registry when it could be a host. */}}
{{- define "atoll.image" -}}
{{- $image := .image -}}
{{- if not (regexMatch "(:[A-Za-z0-9_.-]+|@sha256:[0-9a-f]{64})$" $image) -}}
{{- $image = printf "%s:%s" $image (coalesce .tag .root.Values.tag .root.Chart.AppVersion) -}}
{{- end -}}
{{- if not (regexMatch "^(localhost|[^/]*[.:][^/]*)/" $image) -}}
{{- $image = printf "%s/%s" (trimSuffix "/" (include "atoll.registry" .root)) $image -}}
{{- end -}}
{{- $image -}}
{{- end -}}

{{- define "atoll.registry" -}}
{{- if not .Values.registry -}}
{{- fail "registry is required: give the registry of the images, for example --set registry=ghcr.io/acme (scripts/release.sh pushes images there), or --set registry=localhost for images that are loaded into the nodes" -}}
{{- end -}}
{{- .Values.registry -}}
{{- end -}}

{{/* What a pod of either side may be given: dict "root" $ "values" .Values.worker. */}}
{{- define "atoll.placement" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
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

{{/* The claim with the token files: the release's own, or that of k8s/tools/tokens. A release of chart 0.1.0 created atoll-data: it
keeps that name, since an upgrade deletes what it does not name. */}}
{{- define "atoll.dataClaim" -}}
{{- $before := lookup "v1" "PersistentVolumeClaim" .Release.Namespace "atoll-data" | default dict -}}
{{- $owner := dig "metadata" "annotations" "meta.helm.sh/release-name" "" $before -}}
{{- if .Values.worker.data.claim -}}
{{- .Values.worker.data.claim -}}
{{- else if and .Values.worker.data.create (ne $owner .Release.Name) -}}
{{- include "atoll.name" . -}}-data
{{- else -}}
atoll-data
{{- end -}}
{{- end -}}

{{/* Whether each worker has a set and secrets of its own. */}}
{{- define "atoll.identities" -}}
{{- if or .Values.tls.enabled .Values.tokens.enabled (gt (int .Values.worker.ranks) 1) -}}yes{{- end -}}
{{- end -}}

{{/* Whether the coordinator scales the workers: not those of a Job, and not those of several pods. */}}
{{- define "atoll.launches" -}}
{{- if and (eq .Values.worker.kind "StatefulSet") (le (int .Values.worker.ranks) 1) -}}yes{{- end -}}
{{- end -}}

{{/* How many workers this release makes, where no launcher decides. */}}
{{- define "atoll.replicas" -}}
{{- if kindIs "invalid" .Values.worker.replicas -}}2{{- else -}}{{ .Values.worker.replicas }}{{- end -}}
{{- end -}}

{{/* The names of workers with an identity of their own, as a YAML list. */}}
{{- define "atoll.workers" -}}
{{- $prefix := printf "%s-worker" (include "atoll.name" .) -}}
{{- if .Values.island.name -}}{{ $prefix = printf "%s-%s" .Values.island.name $prefix }}{{- end -}}
{{- $names := list -}}
{{- range $i := until (int (include "atoll.replicas" .)) -}}{{ $names = append $names (printf "%s-%d" $prefix $i) }}{{- end -}}
{{ toYaml $names }}
{{- end -}}

{{- define "atoll.checks" -}}
{{- if and .Values.tokens.enabled (not .Values.tls.enabled) -}}{{ fail "tokens.enabled needs tls.enabled: without TLS anyone on the network path can read the tokens" }}{{- end -}}
{{- if and .Values.tls.enabled (eq .Values.worker.kind "Job") -}}{{ fail "tls.enabled needs worker.kind StatefulSet: the pods of a Job would share one key" }}{{- end -}}
{{- if and (gt (int .Values.worker.ranks) 1) (eq .Values.worker.kind "Job") -}}{{ fail "worker.ranks above 1 needs worker.kind StatefulSet: ranks find each other by the names of their pods" }}{{- end -}}
{{- if and .Values.tls.certManager.enabled .Values.tls.create -}}{{ fail "tls.certManager.enabled and tls.create both create the secrets: enable only one of them" }}{{- end -}}
{{- if and .Values.tls.certManager.enabled (not .Values.tls.certManager.issuer.name) -}}{{ fail "tls.certManager.enabled needs tls.certManager.issuer.name" }}{{- end -}}
{{- if and .Values.expose.enabled (not .Values.tls.enabled) -}}{{ fail "expose.enabled needs tls.enabled: without TLS, anyone who reaches the data port can read and change the run" }}{{- end -}}
{{- if and .Values.island.enabled (or (not .Values.island.name) (not .Values.island.coordinator)) -}}{{ fail "island.enabled needs island.name and island.coordinator" }}{{- end -}}
{{- end -}}
