{{/* Name of every object: "tollgate" for the release "tollgate", "<release>-tollgate" for others, unless `fullnameOverride` is set. */}}
{{- define "tollgate.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What tells the pods of this release apart from all others. Call: (list $ "gateway"). */}}
{{- define "tollgate.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* Labels of every object. Call: (list $ "gateway"), or (list $ "") for an object of no component. */}}
{{- define "tollgate.labels" -}}
{{- $root := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
{{- with index . 1 }}
app.kubernetes.io/component: {{ . }}
{{- end }}
app.kubernetes.io/part-of: tollgate
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
{{- end -}}

{{/* Labels of pods: those of the selector, and none that change with the version. The first of these that has a label holds. */}}
{{- define "tollgate.podLabels" -}}
{{- $values := (index . 0).Values -}}
{{- $ofHooks := ternary dict $values.migrate.podLabels (eq (index . 1) "gateway") | default dict -}}
{{ merge (include "tollgate.selector" . | fromYaml) $ofHooks ($values.podLabels | default dict) (dict "app.kubernetes.io/part-of" "tollgate") | toYaml }}
{{- end -}}

{{- define "tollgate.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "tollgate.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "tollgate.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "tollgate.secret" -}}
{{- .Values.existingSecret | default (include "tollgate.fullname" .) -}}
{{- end -}}

{{/* The settings that are no secrets, as a JSON object of strings: those of the ports and the drain, then `settings`. */}}
{{- define "tollgate.settings" -}}
{{- $settings := dict
  "PORT" "8080"
  "ADMIN_PORT" "8081"
  "OPS_PORT" "9090"
  "SHUTDOWN_DELAY_MS" "5000"
  "SHUTDOWN_DRAIN_MS" "25000" -}}
{{- range $name := concat (list "ROOT_TOKEN" "ENCRYPTION_KEY" "DATABASE_URL" "REDIS_URL") .Values.secretSettings -}}
{{- $_ := set $settings (printf "%s_FILE" $name) (printf "/run/secrets/tollgate/%s" $name) -}}
{{- end -}}
{{- if .Values.authorize.enabled -}}
{{- $_ := set $settings "AUTHORIZE_PORT" "8082" -}}
{{- end -}}
{{- if .Values.configuration.content -}}
{{- /* The Deployment has these in `env`, which takes precedence over the ConfigMap without a word. */ -}}
{{- range $name, $value := dict "CONFIG_FILE" "content" "CONFIG_OWNER" "owner" "CONFIG_PRUNE" "prune" -}}
{{- if hasKey $.Values.settings $name -}}
{{- fail (printf "settings.%s: is set by configuration.%s, because there is configuration.content" $name $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := .Values.settings -}}
{{- if and (kindIs "float64" $value) (eq (floor $value) $value) -}}
{{- /* Helm reads 1000000 as a floating-point number, which would be written as 1e+06. */ -}}
{{- $_ := set $settings $name (printf "%.0f" $value) -}}
{{- else if and (kindIs "bool" $value) (has $name (list "ACCESS_LOG" "CONSOLE" "METRICS_PER_KEY" "PORTAL" "ROOT_TOKEN_SIGN_IN")) -}}
{{- /* Helm reads on and off without quotes as booleans. */ -}}
{{- $_ := set $settings $name (ternary "on" "off" $value) -}}
{{- else -}}
{{- $_ := set $settings $name (toString $value) -}}
{{- end -}}
{{- end -}}
{{- toJson $settings -}}
{{- end -}}

{{/* `terminationGracePeriodSeconds`, long enough for the shutdown that the settings ask for. */}}
{{- define "tollgate.gracePeriodSeconds" -}}
{{- $settings := include "tollgate.settings" . | fromJson -}}
{{- $shutdownMs := add (int64 $settings.SHUTDOWN_DELAY_MS) (int64 $settings.SHUTDOWN_DRAIN_MS) 50000 -}}
{{- if lt (mul (int64 .Values.terminationGracePeriodSeconds) 1000) $shutdownMs -}}
{{- fail (printf "terminationGracePeriodSeconds: must be at least %d, for SHUTDOWN_DELAY_MS, SHUTDOWN_DRAIN_MS and 50 s to write the last usage" (div (add $shutdownMs 999) 1000)) -}}
{{- end -}}
{{- .Values.terminationGracePeriodSeconds -}}
{{- end -}}

{{- define "tollgate.container" -}}
image: {{ include "tollgate.image" . }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
{{- end -}}
