{{- define "atoll.spotAffinity" -}}
nodeAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      preference:
        matchExpressions:
          - key: cloud.google.com/gke-spot
            operator: In
            values: ["true"]
    - weight: 100
      preference:
        matchExpressions:
          - key: karpenter.sh/capacity-type
            operator: In
            values: [spot]
    - weight: 100
      preference:
        matchExpressions:
          - key: kubernetes.azure.com/scalesetpriority
            operator: In
            values: [spot]
{{- end -}}

{{/* A worker's pod, the same for all workloads. `.identity`: the name of the worker that it is for, or nothing. */}}
{{- define "atoll.workerPod" -}}
{{- $name := include "atoll.name" . }}
{{- $own := dict "root" $ "component" "worker" }}
{{- $job := eq .Values.worker.kind "Job" }}
{{- $ranks := gt (int .Values.worker.ranks) 1 }}
metadata:
  labels:
    {{- include "atoll.podLabels" $own | nindent 4 }}
  {{- with .Values.worker.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- if $job }}
  restartPolicy: Never
  {{- end }}
  serviceAccountName: {{ $name }}-worker
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ add .Values.worker.drainSeconds .Values.worker.leaveSeconds }}
  securityContext:
    {{- include "atoll.podSecurity" . | nindent 4 }}
  {{- if not $ranks }}
  topologySpreadConstraints:
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "atoll.selector" $own | nindent 10 }}
    {{- end }}
  {{- end }}
  {{- include "atoll.placement" (dict "root" $ "values" .Values.worker) | nindent 2 }}
  {{- if or .Values.worker.gpus .Values.worker.spot .Values.worker.tolerations }}
  tolerations:
    {{- if .Values.worker.gpus }}
    - key: nvidia.com/gpu
      operator: Exists
      effect: NoSchedule
    {{- end }}
    {{- if .Values.worker.spot }}
    - key: cloud.google.com/gke-spot
      operator: Equal
      value: "true"
      effect: NoSchedule
    - key: kubernetes.azure.com/scalesetpriority
      operator: Equal
      value: spot
      effect: NoSchedule
    - key: spot
      operator: Exists
      effect: NoSchedule
    {{- end }}
    {{- with .Values.worker.tolerations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
  {{- $affinity := deepCopy .Values.worker.affinity }}
  {{- if .Values.worker.spot }}
  {{- $affinity = merge $affinity (include "atoll.spotAffinity" . | fromYaml) }}
  {{- end }}
  {{- with $affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.worker.data.sampleText }}
  initContainers:
    - name: tokens
      image: {{ include "atoll.image" (dict "root" $ "image" .Values.coordinator.image "tag" .Values.worker.tag) }}
      command: [sh, -c]
      args:
        - test -f /data/text/meta.json || atoll-data tokenize --out /data/text /usr/share/atoll/text/*.md
      resources:
        requests:
          cpu: 100m
          memory: 64Mi
        limits:
          memory: 128Mi
      securityContext:
        {{- include "atoll.containerSecurity" . | nindent 8 }}
      volumeMounts:
        - name: data
          mountPath: /data
  {{- end }}
  containers:
    - name: worker
      image: {{ include "atoll.image" (dict "root" $ "image" .Values.worker.image "tag" .Values.worker.tag) }}
      {{- with .Values.worker.imagePullPolicy }}
      imagePullPolicy: {{ . }}
      {{- end }}
      args:
        - --coordinator=$(ATOLL_COORDINATOR)
        - --name=$(ATOLL_NAME)
        - --data=$(ATOLL_DATA)
        - --state-dir=/state/worker
        - --device=$(ATOLL_DEVICE)
        - --threads=$(ATOLL_THREADS)
        - --drain-seconds=$(ATOLL_DRAIN_SECONDS)
        - --metrics-listen=0.0.0.0:7602
        - --ready-file=/run/atoll/ready
        - --log-format=json
        {{- if .Values.tls.enabled }}
        - --tls-cert=/etc/atoll/tls/tls.crt
        - --tls-key=/etc/atoll/tls/tls.key
        - --tls-ca=/etc/atoll/tls/ca.crt
        {{- end }}
        {{- if .Values.tokens.enabled }}
        - --token-file=/etc/atoll/token/token
        {{- end }}
        {{- if $ranks }}
        - --island=$(ATOLL_NAME)-0.{{ $name }}-worker:29500
        - --rank=$(ATOLL_RANK)
        - --world-size={{ .Values.worker.ranks }}
        {{- end }}
        {{- with .Values.worker.extraArgs }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      env:
        - name: ATOLL_COORDINATOR
          value: {{ if .Values.island.enabled }}{{ .Values.island.coordinator | quote }}{{ else }}{{ $name }}-coordinator:7600{{ end }}
        {{- if $job }}
        - name: ATOLL_INDEX
          valueFrom:
            fieldRef:
              fieldPath: metadata.labels['batch.kubernetes.io/job-completion-index']
        - name: ATOLL_NAME
          value: {{ with .Values.island.name }}{{ . }}-{{ end }}{{ $name }}-worker-$(ATOLL_INDEX)
        {{- else if .identity }}
        - name: ATOLL_NAME
          value: {{ .identity }}
        {{- else if .Values.island.enabled }}
        - name: ATOLL_POD
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        - name: ATOLL_NAME
          value: {{ .Values.island.name }}-$(ATOLL_POD)
        {{- else }}
        - name: ATOLL_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        {{- end }}
        - name: ATOLL_DATA
          value: {{ if .Values.worker.data.sampleText }}/data/text{{ else }}/data{{ end }}
        - name: ATOLL_DEVICE
          value: {{ .Values.worker.device }}
        - name: ATOLL_THREADS
          value: {{ .Values.worker.threads | quote }}
        - name: ATOLL_DRAIN_SECONDS
          value: {{ .Values.worker.drainSeconds | quote }}
        {{- if $ranks }}
        - name: ATOLL_RANK
          valueFrom:
            fieldRef:
              fieldPath: metadata.labels['apps.kubernetes.io/pod-index']
        {{- end }}
        {{- with .Values.worker.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - name: metrics
          containerPort: 7602
      livenessProbe:
        httpGet:
          path: /healthz
          port: metrics
        initialDelaySeconds: 30
        periodSeconds: 30
        timeoutSeconds: 10
        failureThreshold: 6
      readinessProbe:
        exec:
          command: [test, -f, /run/atoll/ready]
        periodSeconds: 10
        timeoutSeconds: 5
      resources:
        {{- $resources := deepCopy .Values.worker.resources }}
        {{- if .Values.worker.gpus }}
        {{- $_ := set $resources.limits "nvidia.com/gpu" .Values.worker.gpus }}
        {{- end }}
        {{- toYaml $resources | nindent 8 }}
      securityContext:
        {{- include "atoll.containerSecurity" . | nindent 8 }}
      volumeMounts:
        - name: data
          mountPath: /data
          readOnly: true
        - name: state
          mountPath: /state
        - name: run
          mountPath: /run/atoll
        - name: tmp
          mountPath: /tmp
        {{- if $ranks }}
        - name: shared-memory
          mountPath: /dev/shm
        {{- end }}
        {{- if .Values.tls.enabled }}
        - name: tls
          mountPath: /etc/atoll/tls
          readOnly: true
        {{- end }}
        {{- if .Values.tokens.enabled }}
        - name: token
          mountPath: /etc/atoll/token
          readOnly: true
        {{- end }}
  volumes:
    - name: data
      {{- if .Values.worker.data.sampleText }}
      emptyDir:
        sizeLimit: 64Mi
      {{- else }}
      persistentVolumeClaim:
        claimName: {{ include "atoll.dataClaim" . }}
        readOnly: true
      {{- end }}
    {{- if or $job (not .Values.worker.state.persistent) }}
    - name: state
      emptyDir:
        sizeLimit: {{ .Values.worker.state.size }}
    {{- end }}
    - name: run
      emptyDir:
        medium: Memory
        sizeLimit: 1Mi
    - name: tmp
      emptyDir:
        sizeLimit: 256Mi
    {{- if $ranks }}
    - name: shared-memory
      emptyDir:
        medium: Memory
        sizeLimit: 1Gi
    {{- end }}
    {{- if .Values.tls.enabled }}
    - name: tls
      secret:
        secretName: {{ .identity }}-tls
        defaultMode: 288  # 0440
    {{- end }}
    {{- if .Values.tokens.enabled }}
    - name: token
      secret:
        secretName: {{ .identity }}-token
        defaultMode: 288  # 0440
    {{- end }}
{{- end -}}
