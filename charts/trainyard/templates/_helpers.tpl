{{/* The name of the controller's objects, which is that of the Kubeflow Trainer. The shadow mode runs beside it. */}}
{{- define "trainyard.name" -}}
{{- ternary "trainyard-shadow" "kubeflow-trainer-controller-manager" .Values.shadow.enabled -}}
{{- end -}}

{{/* What the names of its ConfigMaps begin with. */}}
{{- define "trainyard.prefix" -}}
{{- ternary "trainyard-shadow" "kubeflow-trainer" .Values.shadow.enabled -}}
{{- end -}}

{{/* The labels that nobody can change. Services of the Kubeflow Trainer must not select pods of the shadow mode. */}}
{{- define "trainyard.fixedLabels" -}}
app.kubernetes.io/name: trainer
app.kubernetes.io/component: {{ ternary "shadow" "manager" .Values.shadow.enabled }}
app.kubernetes.io/part-of: kubeflow
{{- end -}}

{{/* The labels that select the controller's pods. */}}
{{- define "trainyard.selector" -}}
{{- $fixed := fromYaml (include "trainyard.fixedLabels" .) -}}
{{- toYaml (merge $fixed .Values.manager.selectorLabels) -}}
{{- end -}}

{{/* The labels of all objects except CRDs. */}}
{{- define "trainyard.labels" -}}
{{- $fixed := fromYaml (include "trainyard.fixedLabels" .) -}}
{{- toYaml (merge $fixed .Values.commonLabels) -}}
{{- end -}}

{{/* The labels of the controller's pods. */}}
{{- define "trainyard.podLabels" -}}
{{- toYaml (merge (fromYaml (include "trainyard.selector" .)) .Values.manager.labels .Values.commonLabels) -}}
{{- end -}}

{{/* The image of the controller. */}}
{{- define "trainyard.image" -}}
{{- with .Values.image -}}
{{- with .registry }}{{ . }}/{{ end }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ with .digest }}@{{ . }}{{ end }}
{{- end -}}
{{- end -}}

{{/* The port of an address such as `:8080`. */}}
{{- define "trainyard.port" -}}
{{- regexFind "[0-9]+$" . -}}
{{- end -}}

{{/* The port of the webhooks, which is by default that of the Kubeflow Trainer. */}}
{{- define "trainyard.webhookPort" -}}
{{- (.Values.manager.config.webhook | default dict).port | default 9443 -}}
{{- end -}}

{{/* Not empty if pods report progress to the controller. Those of the shadow mode do not. */}}
{{- define "trainyard.progress" -}}
{{- if and (.Values.manager.config.featureGates | default dict).TrainJobStatus (not .Values.shadow.enabled) }}yes{{ end -}}
{{- end -}}

{{/* The port to which pods report progress, which is by default that of the Kubeflow Trainer. */}}
{{- define "trainyard.statusPort" -}}
{{- (.Values.manager.config.statusServer | default dict).port | default 10443 -}}
{{- end -}}

{{/* The Secret with the certificate that the controller creates; empty if it creates none. */}}
{{- define "trainyard.managedSecret" -}}
{{- with .Values.manager.config.certManagement | default dict -}}
{{- if and .enable (not $.Values.shadow.enabled) }}{{ .webhookSecretName | default "kubeflow-trainer-webhook-cert" }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* The Secret with the certificate of the webhooks and of metrics; empty if there is none. */}}
{{- define "trainyard.webhookSecret" -}}
{{- .Values.webhooks.certSecret | default (include "trainyard.managedSecret" .) -}}
{{- end -}}

{{/* Whether the API server decides who may read metrics; empty if not. */}}
{{- define "trainyard.metricsAuth" -}}
{{- if (.Values.manager.config.metrics.auth | default dict).enabled }}true{{ end -}}
{{- end -}}

{{/* Not empty if plugins are declared in the cluster. The shadow mode reads none of them. */}}
{{- define "trainyard.clusterPlugins" -}}
{{- if and (eq .Values.plugins.source "Cluster") (not .Values.shadow.enabled) }}yes{{ end -}}
{{- end -}}

{{/* The documents of `plugins.roles` that are the roles of plugins and not those of the controller, as a list. */}}
{{- define "trainyard.pluginRoles" -}}
{{- $roles := list -}}
{{- range $text := splitList "\n---\n" .Values.plugins.roles -}}
{{- $role := fromYaml $text -}}
{{- if hasPrefix "trainyard:plugin:" (($role.metadata | default dict).name | default "") }}{{ $roles = append $roles $role }}{{ end -}}
{{- end -}}
{{- with $roles }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/* The mirrors and certificate authorities of registries, as a file; empty without any. */}}
{{- define "trainyard.registries" -}}
{{- if include "trainyard.clusterPlugins" . }}{{ with .Values.plugins.registries }}{{ toYaml . }}{{ end }}{{ end -}}
{{- end -}}

{{/* The controller's configuration, as a file. */}}
{{- define "trainyard.config" -}}
{{- $config := deepCopy .Values.manager.config -}}
{{- $controller := $config.controller | default dict -}}
{{- with $controller.groupKindConcurrency -}}
{{- with .trainJob }}{{ $_ := set $controller "concurrency" . }}{{ end -}}
{{- $_ := unset $controller "groupKindConcurrency" -}}
{{- end -}}
{{- if not $controller }}{{ $_ := unset $config "controller" }}{{ end -}}
{{- if not $config.leaderElection.resourceNamespace }}{{ $_ := unset $config.leaderElection "resourceNamespace" }}{{ end -}}
{{- /* Keys of the Kubeflow Trainer's chart. If they are set, templates/validate.yaml has checked that they mean the same here. */ -}}
{{- with $config.certManagement -}}
{{- $_ := unset . "webhookServiceName" -}}
{{- if not .webhookSecretName }}{{ $_ := unset . "webhookSecretName" }}{{ end -}}
{{- if not .enable }}{{ $_ := unset $config "certManagement" }}{{ end -}}
{{- end -}}
{{- range list "readinessEndpointName" "livenessEndpointName" }}{{ $_ := unset $config.health . }}{{ end -}}
{{- if not $config.metrics.secureServing }}{{ $_ := unset $config.metrics "secureServing" }}{{ end -}}
{{- if not (include "trainyard.metricsAuth" .) }}{{ $_ := unset $config.metrics "auth" }}{{ end -}}
{{- with .Values.plugins.volume }}{{ $_ := set $config "pluginDir" "/plugins" }}{{ end -}}
{{- with .Values.plugins.policy }}{{ $_ := set $config "policyFile" "/policy/policy.yaml" }}{{ end -}}
{{- if include "trainyard.clusterPlugins" . -}}
{{- $plugins := dict "source" "Cluster" -}}
{{- range $key := list "rollout" "signers" "unsigned" -}}
{{- with get $.Values.plugins $key }}{{ $_ := set $plugins $key . }}{{ end -}}
{{- end -}}
{{- $_ := set $config "plugins" $plugins -}}
{{- end -}}
# docs/configuration.md documents every field.
apiVersion: trainyard.dev/v1alpha1
kind: ControllerConfiguration
{{ toYaml $config }}
{{- end -}}

{{/* The annotations of an object that exists while a hook runs after an installation or an upgrade. */}}
{{- define "trainyard.hook" -}}
helm.sh/hook: post-install,post-upgrade
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/* The arguments that select the runtimes of the values, as a list. */}}
{{- define "trainyard.runtimes" -}}
{{- $runtimes := .Values.runtimes -}}
{{- if .Values.shadow.enabled -}}
{{- else if kindIs "string" $runtimes.install -}}
- --all
{{- else -}}
{{- $names := $runtimes.install -}}
{{- $flags := dict
      "torch-distributed" $runtimes.torchDistributed
      "deepspeed-distributed" $runtimes.deepspeedDistributed
      "mlx-distributed" $runtimes.mlxDistributed
      "jax-distributed" $runtimes.jaxDistributed
      "xgboost-distributed" $runtimes.xgboostDistributed -}}
{{- with $runtimes.torchtuneDistributed -}}
{{- $flags = merge $flags (dict "torchtune-llama3.2-1b" .llama3_2_1B "torchtune-llama3.2-3b" .llama3_2_3B "torchtune-qwen2.5-1.5b" .qwen2_5_1_5B) -}}
{{- end -}}
{{- range $name, $flag := $flags -}}
{{- if or $runtimes.defaultEnabled ($flag | default dict).enabled }}{{ $names = append $names $name }}{{ end -}}
{{- end -}}
{{- with $names }}{{ toYaml (. | uniq | sortAlpha) }}{{ end -}}
{{- end -}}
{{- end -}}
