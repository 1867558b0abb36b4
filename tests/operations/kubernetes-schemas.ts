import { HTTPRoute } from '@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1/HTTPRoute';
import { ReferenceGrant } from '@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1beta1/ReferenceGrant';
import { DestinationRule } from '@kubernetes-models/istio/networking.istio.io/v1/DestinationRule';
import { EnvoyFilter } from '@kubernetes-models/istio/networking.istio.io/v1alpha3/EnvoyFilter';
import { AuthorizationPolicy } from '@kubernetes-models/istio/security.istio.io/v1/AuthorizationPolicy';
import { PrometheusRule } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule';
import { ServiceMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor';
import { IngressRoute } from '@kubernetes-models/traefik/traefik.io/v1alpha1/IngressRoute';
import { Middleware } from '@kubernetes-models/traefik/traefik.io/v1alpha1/Middleware';
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

/**
 * The kinds that the manifests use, with the schemas that Kubernetes, the Gateway API, Istio, the Prometheus operator and Traefik publish, as
 * compiled by kubernetes-models.
 */
const KINDS = [
  AuthorizationPolicy,
  ConfigMap,
  Deployment,
  DestinationRule,
  EnvoyFilter,
  HTTPRoute,
  HorizontalPodAutoscaler,
  Ingress,
  IngressRoute,
  Job,
  Middleware,
  Namespace,
  NetworkPolicy,
  Pod,
  PodDisruptionBudget,
  PrometheusRule,
  ReferenceGrant,
  Secret,
  Service,
  ServiceAccount,
  ServiceMonitor,
  StatefulSet,
];

/** Envoy Gateway publishes the schemas of its kinds neither on npm nor on PyPI. */
const WITHOUT_SCHEMA = 'gateway.envoyproxy.io/v1alpha1';
/** A part of Envoy's configuration, of which Istio's schema says nothing. */
const FREE_FORM = /^spec\/configPatches\/\d+\/patch\/value\//;

/** What is wrong with an object by the schema of its kind, fields that the schema does not know included. Empty = nothing. */
export function faultsOf(manifest: Manifest): readonly string[] {
  const model = KINDS.find(({ is }) => is(manifest));
  if (model === undefined && manifest.apiVersion === WITHOUT_SCHEMA) return [];
  if (model === undefined) return [`has no schema: ${manifest.apiVersion} ${manifest.kind}`];
  const watched = watchReads(manifest);
  try {
    // Not `new model(manifest)`: that reads every field to copy it.
    model.prototype.validate.call(watched.value);
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
  const unknown = watched.unread().filter((path) => !(model === EnvoyFilter && FREE_FORM.test(path)));
  return unknown.map((path) => `has an unknown field ${path}`);
}
