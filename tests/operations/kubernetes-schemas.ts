import { HTTPRoute } from '@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1/HTTPRoute';
import { PrometheusRule } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule';
import { ServiceMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor';
import { Deployment } from 'kubernetes-models/apps/v1/Deployment';
import { StatefulSet } from 'kubernetes-models/apps/v1/StatefulSet';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import { Job } from 'kubernetes-models/batch/v1/Job';
import { Ingress } from 'kubernetes-models/networking.k8s.io/v1/Ingress';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { ConfigMap } from 'kubernetes-models/v1/ConfigMap';
import { Namespace } from 'kubernetes-models/v1/Namespace';
import { Pod } from 'kubernetes-models/v1/Pod';
import { Secret } from 'kubernetes-models/v1/Secret';
import { Service } from 'kubernetes-models/v1/Service';
import { ServiceAccount } from 'kubernetes-models/v1/ServiceAccount';
import type { Manifest } from './kustomize.ts';
import { watchReads } from './unread-fields.ts';

/** The kinds that the manifests use, with the schemas that Kubernetes, the Gateway API and the Prometheus operator publish, as compiled by kubernetes-models. */
const KINDS = [
  ConfigMap,
  Deployment,
  HTTPRoute,
  HorizontalPodAutoscaler,
  Ingress,
  Job,
  Namespace,
  NetworkPolicy,
  Pod,
  PodDisruptionBudget,
  PrometheusRule,
  Secret,
  Service,
  ServiceAccount,
  ServiceMonitor,
  StatefulSet,
];

/** What is wrong with an object by the schema of its kind, fields that the schema does not know included. Empty = nothing. */
export function faultsOf(manifest: Manifest): readonly string[] {
  const model = KINDS.find(({ is }) => is(manifest));
  if (model === undefined) return [`has no schema: ${manifest.apiVersion} ${manifest.kind}`];
  const watched = watchReads(manifest);
  try {
    // Not `new model(manifest)`: that reads every field to copy it.
    model.prototype.validate.call(watched.value);
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
  return watched.unread().map((path) => `has an unknown field ${path}`);
}
