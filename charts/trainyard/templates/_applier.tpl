{{- /*
A Job that applies objects, because Helm refuses to install objects of a CRD together with the CRD. It has `root`, `name`, `component`, the
`rules` of its role, and its `arguments`. With `file`, the text of a file that is mounted as /objects/objects.yaml.
*/}}
{{- define "trainyard.applier" -}}
{{- $labels := toYaml (merge (dict "app.kubernetes.io/component" .component) (fromYaml (include "trainyard.labels" .root))) -}}
{{- $name := .name -}}
{{- $component := .component -}}
{{- $rules := .rules -}}
{{- $arguments := .arguments -}}
{{- $file := .file -}}
{{- with .root -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  namespace: {{ .Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
  annotations:
    {{- include "trainyard.hook" -10 | nindent 4 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}
  labels:
    {{- $labels | nindent 4 }}
  annotations:
    {{- include "trainyard.hook" -10 | nindent 4 }}
rules:
{{ toYaml $rules }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels:
    {{- $labels | nindent 4 }}
  annotations:
    {{- include "trainyard.hook" -10 | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
- kind: ServiceAccount
  name: {{ $name }}
  namespace: {{ .Release.Namespace }}
{{- if $file }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $name }}
  namespace: {{ .Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
  annotations:
    {{- include "trainyard.hook" -10 | nindent 4 }}
data:
  objects.yaml: |
    {{- $file | nindent 4 }}
{{- end }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ $name }}
  namespace: {{ .Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
  annotations:
    {{- include "trainyard.hook" 0 | nindent 4 }}
spec:
  backoffLimit: 5
  template:
    metadata:
      labels:
        {{- $labels | nindent 8 }}
    spec:
      restartPolicy: OnFailure
      serviceAccountName: {{ $name }}
      {{- with .Values.image.pullSecrets }}
      imagePullSecrets:
      {{- toYaml . | nindent 6 }}
      {{- end }}
      securityContext:
        {{- toYaml .Values.manager.podSecurityContext | nindent 8 }}
      {{- with .Values.runtimes.installer.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.runtimes.installer.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.runtimes.installer.tolerations }}
      tolerations:
      {{- toYaml . | nindent 6 }}
      {{- end }}
      containers:
      - name: {{ $component }}
        image: {{ include "trainyard.image" . }}
        imagePullPolicy: {{ .Values.image.pullPolicy }}
        args:
        {{- toYaml $arguments | nindent 8 }}
        resources:
          {{- toYaml .Values.runtimes.installer.resources | nindent 10 }}
        securityContext:
          {{- toYaml .Values.manager.securityContext | nindent 10 }}
        {{- if $file }}
        volumeMounts:
        - name: objects
          mountPath: /objects
          readOnly: true
      volumes:
      - name: objects
        configMap:
          name: {{ $name }}
        {{- end }}
{{- end -}}
{{- end -}}
