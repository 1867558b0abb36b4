import { readFile } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { beforeAll, describe, expect, it } from '@jest/globals';
import type { IDeployment } from 'kubernetes-models/apps/v1/Deployment';
import type { IStatefulSet } from 'kubernetes-models/apps/v1/StatefulSet';
import type { IHorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import type { IJob } from 'kubernetes-models/batch/v1/Job';
import type { INetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import type { IConfigMap } from 'kubernetes-models/v1/ConfigMap';
import type { IPodSpec } from 'kubernetes-models/v1/PodSpec';
import type { ISecret } from 'kubernetes-models/v1/Secret';
import type { IService } from 'kubernetes-models/v1/Service';
import { parse } from 'yaml';
import { readRecordSettings, readSettings, SETTINGS } from '../../src/settings/settings.ts';
import { type Manifest, OVERLAYS, parseManifests, renderOverlay, renderWithComponent } from './kustomize.ts';

/** Longest that `src/app/replica.ts` takes after the drain to write the last usage and to close everything, one deadline after another. */
const CLOSING_MS = 50_000;

const EVENT_LOOP_DELAY = 'tollgate_event_loop_delay_p99_seconds';

/** A rule of prometheus-adapter. */
interface AdapterRule {
  readonly seriesQuery: string;
  readonly name?: { readonly as: string };
}

const rendered = new Map<string, readonly Manifest[]>();

/** The only object of this kind whose name is this one, or starts with it and a hash. The check against the schemas makes its type true. */
function find<T>(overlay: string, kind: string, name: string): T {
  const pattern = new RegExp(`^${name}(-[a-z0-9]{10})?$`);
  const found = (rendered.get(overlay) ?? []).filter(
    (manifest) => manifest.kind === kind && pattern.test(manifest.metadata.name),
  );
  expect(found).toHaveLength(1);
  return found[0] as unknown as T;
}

function settingsOf(overlay: string): Record<string, string> {
  return { ...find<IConfigMap>(overlay, 'ConfigMap', 'tollgate-settings').data };
}

function podOf(overlay: string): IPodSpec {
  const { spec } = find<IDeployment>(overlay, 'Deployment', 'tollgate');
  if (spec?.template.spec === undefined) throw new Error('the Deployment has no pod');
  return spec.template.spec;
}

function podsOf(overlay: string): readonly (readonly [name: string, pod: IPodSpec])[] {
  return (rendered.get(overlay) ?? []).flatMap((manifest) => {
    const { template } = (manifest.spec ?? {}) as { template?: { spec: IPodSpec } };
    return template === undefined ? [] : [[manifest.metadata.name, template.spec] as const];
  });
}

function namespaceOf(name: string): object {
  return { matchLabels: { 'kubernetes.io/metadata.name': name } };
}

beforeAll(async () => {
  for (const overlay of OVERLAYS) rendered.set(overlay, await renderOverlay(overlay));
}, 300_000);

describe.each(OVERLAYS)('the overlay %s', (overlay) => {
  it('sets nothing that the gateway does not know', () => {
    const known = Object.values(SETTINGS).flatMap(({ variable, secret }) =>
      secret ? [variable, `${variable}_FILE`] : [variable],
    );
    expect(Object.keys(settingsOf(overlay)).filter((variable) => !known.includes(variable))).toEqual([]);
  });

  it('gives every secret as a file that is mounted, and in no other way', () => {
    const settings = settingsOf(overlay);
    const secrets = Object.values(SETTINGS)
      .filter(({ secret }) => secret)
      .map(({ variable }) => variable)
      // No overlay has a port for decisions, or an identity provider, which these are for.
      .filter((variable) => variable !== 'AUTHORIZE_TOKEN' || settings.AUTHORIZE_PORT !== undefined)
      .filter((variable) => variable !== 'OIDC_CLIENT_SECRET' || settings.OIDC_ISSUER !== undefined);
    const [container] = podOf(overlay).containers;
    const mount = container?.volumeMounts?.find(({ name }) => name === 'secrets');
    for (const variable of secrets) {
      expect(settings[variable]).toBeUndefined();
      expect(settings[`${variable}_FILE`]).toBe(`${mount?.mountPath}/${variable}`);
    }
    expect(container?.env).toBeUndefined();
    expect(podOf(overlay).volumes).toEqual([
      { name: 'secrets', secret: { secretName: 'tollgate', defaultMode: 0o440 } },
    ]);
  });

  it('has ports and probes where the gateway listens', () => {
    const { PORT, ADMIN_PORT, OPS_PORT } = settingsOf(overlay);
    const [container] = podOf(overlay).containers;
    expect([PORT, OPS_PORT]).toEqual([SETTINGS.port.byDefault, SETTINGS.opsPort.byDefault]);
    expect(container?.ports).toEqual([
      { name: 'http', containerPort: Number(PORT) },
      { name: 'admin', containerPort: Number(ADMIN_PORT) },
      { name: 'ops', containerPort: Number(OPS_PORT) },
    ]);
    expect(container?.startupProbe?.httpGet).toEqual({ path: '/livez', port: 'ops' });
    expect(container?.livenessProbe?.httpGet).toEqual({ path: '/livez', port: 'ops' });
    expect(container?.readinessProbe?.httpGet).toEqual({ path: '/readyz', port: 'ops' });
    const targets = (name: string) =>
      find<IService>(overlay, 'Service', name).spec?.ports?.map((port) => port.targetPort);
    expect(targets('tollgate')).toEqual(['http']);
    expect(targets('tollgate-admin')).toEqual(['admin']);
    expect(targets('tollgate-ops')).toEqual(['ops']);
  });

  it('keeps management apart: a ClusterIP Service, for labelled namespaces only', () => {
    expect(find<IService>(overlay, 'Service', 'tollgate-admin').spec?.type).toBe('ClusterIP');
    const policy = find<INetworkPolicy>(overlay, 'NetworkPolicy', 'tollgate-ingress');
    const whoReaches = (port: string) =>
      policy.spec?.ingress?.filter(({ ports }) => ports?.some((each) => each.port === port));
    expect(whoReaches('http')?.map(({ from }) => from)).toEqual([undefined]);
    expect(whoReaches('admin')?.map(({ from }) => from)).toEqual([
      [{ namespaceSelector: { matchLabels: { 'tollgate-management': 'allowed' } } }],
    ]);
  });

  it.each([
    ['of the cluster', 53, { namespaceSelector: namespaceOf('kube-system') }],
    ['NodeLocal DNSCache', 53, { ipBlock: { cidr: '169.254.20.10/32' } }],
    ['Cloud DNS for GKE', 53, { ipBlock: { cidr: '169.254.169.254/32' } }],
    ['of OpenShift', 5353, { namespaceSelector: namespaceOf('openshift-dns') }],
  ])('lets its pods reach the name server %s, and no other port of it', (_server, port, peer) => {
    const ofPods = (rendered.get(overlay) ?? []).flatMap((manifest) => {
      if (manifest.kind !== 'NetworkPolicy') return [];
      const { spec } = manifest as unknown as INetworkPolicy;
      return spec?.podSelector?.matchLabels !== undefined && spec.egress !== undefined ? [spec.egress] : [];
    });
    // The gateway, and the migrate Job where there is one.
    expect(ofPods).toHaveLength(overlay === 'dev' ? 1 : 2);
    for (const egress of ofPods) {
      const rules = egress.filter(({ to }) => to?.some((each) => isDeepStrictEqual(each, peer)));
      const protocols = ['UDP', 'TCP'].map((protocol) => ({ protocol, port }));
      expect(rules.map(({ ports }) => ports)).toEqual([protocols]);
    }
  });

  it('gives the gateway the time that it takes to stop', () => {
    const { SHUTDOWN_DELAY_MS, SHUTDOWN_DRAIN_MS } = settingsOf(overlay);
    const graceMs = Number(podOf(overlay).terminationGracePeriodSeconds) * 1000;
    expect(graceMs).toBeGreaterThanOrEqual(
      Number(SHUTDOWN_DELAY_MS) + Number(SHUTDOWN_DRAIN_MS) + CLOSING_MS,
    );
  });

  it('turns readiness off for longer than it takes to be noticed', () => {
    const probe = podOf(overlay).containers[0]?.readinessProbe;
    const noticedMs = Number(probe?.periodSeconds) * Number(probe?.failureThreshold) * 1000;
    expect(Number(settingsOf(overlay).SHUTDOWN_DELAY_MS)).toBeGreaterThan(noticedMs);
  });

  it('runs at least two gateways, spread out, and never fewer during an upgrade', () => {
    const { spec } = find<IDeployment>(overlay, 'Deployment', 'tollgate');
    const replicas =
      spec?.replicas ??
      find<IHorizontalPodAutoscaler>(overlay, 'HorizontalPodAutoscaler', 'tollgate').spec?.minReplicas;
    expect(replicas).toBeGreaterThanOrEqual(2);
    expect(spec?.strategy?.rollingUpdate?.maxUnavailable).toBe(0);
    for (const { labelSelector, matchLabelKeys } of podOf(overlay).topologySpreadConstraints ?? []) {
      expect(labelSelector).toEqual(spec?.selector);
      // Counts the pods of one version alone: those of before, which end during an upgrade, would leave the new ones on one node.
      expect(matchLabelKeys).toEqual(['pod-template-hash']);
    }
    expect(podOf(overlay).topologySpreadConstraints).toHaveLength(2);
  });

  it('gives no pod more rights than it needs', () => {
    for (const [name, pod] of podsOf(overlay)) {
      expect([name, pod.automountServiceAccountToken]).toEqual([name, false]);
      expect([name, pod.enableServiceLinks]).toEqual([name, false]);
      expect(pod.securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      for (const container of pod.containers) {
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        expect(container.resources).toMatchObject({ requests: { cpu: expect.anything() } });
        expect(container.resources).toMatchObject({ limits: { memory: expect.anything() } });
      }
    }
  });

  it('starts: the settings and a Secret like the sample are accepted in production', () => {
    const { data = {} } = find<ISecret>('dev', 'Secret', 'tollgate');
    const sample = Object.fromEntries(
      Object.entries(data).map(([name, value]) => [name, Buffer.from(value, 'base64').toString()]),
    );
    const settings = Object.fromEntries(
      Object.entries(settingsOf(overlay)).filter(([variable]) => !variable.endsWith('_FILE')),
    );
    const read = readSettings({ ...settings, ...sample, NODE_ENV: 'production' });
    expect(read.autoMigrate).toBe(overlay === 'dev');
    expect(read.shutdownDelayMs).toBe(5000);
  });
});

describe('the Redis of the overlay dev', () => {
  it('appends all writes to a file, and makes no snapshots, which would end all writes where one fails', () => {
    const { spec } = find<IStatefulSet>('dev', 'StatefulSet', 'redis');
    const args = spec?.template.spec?.containers[0]?.args?.join(' ');
    expect(args).toContain('--appendonly yes');
    expect(args).toMatch(/--save (?= --|$)/);
  });
});

describe('the migrate Job of production', () => {
  const pod = () =>
    (rendered.get('production') ?? [])
      .filter(({ kind }) => kind === 'Job')
      .map((job) => (job as unknown as IJob).spec?.template.spec);

  it('needs the address of the database and nothing else', () => {
    expect(pod()).toHaveLength(1);
    const [container] = pod()[0]?.containers ?? [];
    expect(container?.envFrom).toBeUndefined();
    expect(container?.env).toEqual([
      { name: 'DATABASE_URL_FILE', value: '/run/secrets/tollgate/DATABASE_URL' },
    ]);
    expect(pod()[0]?.serviceAccountName).toBeUndefined();
    expect(pod()[0]?.volumes).toEqual([
      {
        name: 'secrets',
        secret: {
          secretName: 'tollgate',
          defaultMode: 0o440,
          items: [{ key: 'DATABASE_URL', path: 'DATABASE_URL' }],
        },
      },
    ]);
    const settings = { NODE_ENV: 'production', DATABASE_URL: 'postgres://db/tollgate' };
    expect(readRecordSettings(settings)).toMatchObject({ databaseUrl: 'postgres://db/tollgate' });
  });

  it('is named after the release that its image is of', () => {
    const job = rendered.get('production')?.find(({ kind }) => kind === 'Job');
    const tag = /:([^:/]+)$/.exec(pod()[0]?.containers[0]?.image ?? '')?.[1];
    expect(job?.metadata.name).toBe(`tollgate-migrate-${tag?.replaceAll('.', '-')}`);
  });
});

describe('the NetworkPolicies of the migrate Job', () => {
  const labelsOf = (job: Manifest | undefined) =>
    Object.entries((job as unknown as IJob | undefined)?.spec?.template.metadata?.labels ?? {});
  /** Those that select the pods of the Job, and not all pods. */
  function policiesOf(manifests: readonly Manifest[]): readonly Manifest[] {
    const labels = new Map(labelsOf(manifests.find(({ kind }) => kind === 'Job')));
    return manifests.filter((manifest) => {
      if (manifest.kind !== 'NetworkPolicy') return false;
      const { podSelector } = (manifest as unknown as INetworkPolicy).spec ?? {};
      const selected = Object.entries(podSelector?.matchLabels ?? {});
      return selected.length > 0 && selected.every(([name, value]) => labels.get(name) === value);
    });
  }

  it('are applied with it by the label that the runbook selects', async () => {
    const runbook = await readFile('docs/runbook.md', 'utf8');
    const [, label = '', value] = /^kubectl apply -k \S+ -l (\S+)=(\S+)$/m.exec(runbook) ?? [];
    const manifests = rendered.get('production') ?? [];
    const selected = manifests.filter(({ metadata }) => metadata.labels?.[label] === value);
    expect(policiesOf(manifests)).toHaveLength(1);
    expect(selected.map(({ kind }) => kind).toSorted()).toEqual(['Job', 'NetworkPolicy']);
    expect(selected).toEqual(expect.arrayContaining([...policiesOf(manifests)]));
  });

  it('are hooks of Argo CD in an earlier wave than its own', async () => {
    const manifests = await renderWithComponent('argo-cd');
    const waveOf = ({ metadata: { annotations = {} } }: Manifest) =>
      Number(annotations['argocd.argoproj.io/sync-wave'] ?? 0);
    const jobs = manifests.filter(({ kind }) => kind === 'Job');
    const policies = policiesOf(manifests);
    expect([jobs.length, policies.length]).toEqual([1, 1]);
    for (const { metadata } of [...jobs, ...policies])
      expect(metadata.annotations).toMatchObject({
        'argocd.argoproj.io/hook': 'PreSync',
        'argocd.argoproj.io/hook-delete-policy': 'BeforeHookCreation',
      });
    expect(Math.max(...policies.map(waveOf))).toBeLessThan(Math.min(...jobs.map(waveOf)));
  });
});

describe('the Ingress example', () => {
  it('exposes the public port and no other', async () => {
    const [ingress] = parseManifests(await readFile('k8s/overlays/production/ingress.example.yaml', 'utf8'));
    const backends = JSON.stringify(ingress).match(/"service":\{[^}]*\{[^}]*\}\}/g);
    expect(backends).toEqual(['"service":{"name":"tollgate","port":{"name":"http"}}']);
  });
});

describe('autoscaling', () => {
  it('adds replicas before one has more requests in flight than backend connections', () => {
    const { spec } = find<IHorizontalPodAutoscaler>('production', 'HorizontalPodAutoscaler', 'tollgate');
    const pods = spec?.metrics?.find(({ type }) => type === 'Pods')?.pods;
    expect(Number(pods?.target.averageValue)).toBeLessThan(Number(SETTINGS.backendConnections.byDefault));
    expect(find<IDeployment>('production', 'Deployment', 'tollgate').spec?.replicas).toBeUndefined();
  });

  it('goes by CPU first, and by a delay of the event loop that no alert has seen yet', async () => {
    const { spec } = find<IHorizontalPodAutoscaler>('production', 'HorizontalPodAutoscaler', 'tollgate');
    const [first, ...others] = spec?.metrics ?? [];
    expect(first?.resource?.name).toBe('cpu');
    const delay = others.find(({ pods }) => pods?.metric.name === EVENT_LOOP_DELAY)?.pods?.target
      .averageValue;
    const rules = await readFile('k8s/components/monitoring/prometheus-rule.yaml', 'utf8');
    const alertAt = Number(
      /tollgate_event_loop_delay_seconds\{statistic="p99"\} > ([\d.]+)/.exec(rules)?.[1],
    );
    expect(delay).toMatch(/^\d+m$/);
    expect(Number.parseInt(String(delay), 10)).toBeLessThan(1000 * alertAt);
  });

  it('uses only metrics that the runbook derives from metrics of ours', async () => {
    const { spec } = find<IHorizontalPodAutoscaler>('production', 'HorizontalPodAutoscaler', 'tollgate');
    const runbook = await readFile('docs/runbook.md', 'utf8');
    const [, block = ''] = /```yaml\n(rules:\n {2}- seriesQuery[\s\S]*?)```/.exec(runbook) ?? [];
    const { rules } = parse(block) as { readonly rules: readonly AdapterRule[] };
    const derived = rules.map(({ seriesQuery, name }) => name?.as ?? seriesQuery.replace(/\{.*/, ''));
    const used = spec?.metrics?.flatMap(({ pods }) => (pods === undefined ? [] : [pods.metric.name]));
    expect(derived.toSorted()).toEqual(used?.toSorted());
    const documented = await readFile('docs/metrics.md', 'utf8');
    for (const { seriesQuery } of rules)
      expect(documented).toContain(`| \`${seriesQuery.replace(/\{.*/, '')}\` |`);
  });
});

describe('the component for other gateways', () => {
  it('opens a port for labelled namespaces only, beside those of production', async () => {
    const manifests = await renderWithComponent('authorize');
    const named = (kind: string, name: string) =>
      manifests.find((each) => each.kind === kind && each.metadata.name === name);
    const service = named('Service', 'tollgate-authorize') as unknown as IService | undefined;
    expect([service?.spec?.type, service?.spec?.ports?.map(({ targetPort }) => targetPort)]).toEqual([
      'ClusterIP',
      ['authorize'],
    ]);
    const policy = named('NetworkPolicy', 'tollgate-authorize') as unknown as INetworkPolicy | undefined;
    expect(policy?.spec?.ingress).toEqual([
      {
        from: [{ namespaceSelector: { matchLabels: { 'tollgate-authorize': 'allowed' } } }],
        ports: [{ protocol: 'TCP', port: 'authorize' }],
      },
    ]);
    const settings = manifests.find(({ metadata }) => metadata.name.startsWith('tollgate-settings-'));
    const data = (settings as unknown as IConfigMap | undefined)?.data ?? {};
    const gateway = named('Deployment', 'tollgate') as unknown as IDeployment | undefined;
    expect(gateway?.spec?.template.spec?.containers[0]?.ports).toContainEqual({
      ...{ name: 'authorize', containerPort: Number(data.AUTHORIZE_PORT) },
    });
    expect(data.BACKEND_URL).toBeDefined();
  });
});

describe('an object with a variable of another tool in it, such as the dashboard', () => {
  it('is left as it is by the substitution of Flux', () => {
    const withVariables = (rendered.get('production') ?? []).filter((manifest) =>
      JSON.stringify(manifest).includes('${'),
    );
    expect(withVariables.map(({ metadata }) => metadata.name)).toEqual(['tollgate-dashboard']);
    for (const { metadata } of withVariables)
      expect(metadata.annotations).toMatchObject({ 'kustomize.toolkit.fluxcd.io/substitute': 'disabled' });
  });
});

describe('the ConfigMaps whose names change with their content', () => {
  it('are left in place by Flux and Argo CD: replicas of before, and a rollback, need the one of before', async () => {
    const generated = (await renderWithComponent('configuration')).filter(
      ({ kind, metadata }) => kind === 'ConfigMap' && /-[a-z0-9]{10}$/.test(metadata.name),
    );
    expect(generated.map(({ metadata }) => metadata.name.slice(0, -11)).toSorted()).toEqual([
      'tollgate-configuration',
      'tollgate-settings',
    ]);
    for (const { metadata } of generated)
      expect(metadata.annotations).toMatchObject({
        'kustomize.toolkit.fluxcd.io/prune': 'disabled',
        'argocd.argoproj.io/sync-options': 'Prune=false',
        // Else it would call the application out of sync.
        'argocd.argoproj.io/compare-options': 'IgnoreExtraneous',
      });
  });
});

describe('the component with a configuration', () => {
  it('mounts it where CONFIG_FILE names it, under a name that changes with it', async () => {
    const manifests = await renderWithComponent('configuration');
    const configMap = manifests.find(({ metadata }) =>
      /^tollgate-configuration-[a-z0-9]{10}$/.test(metadata.name),
    );
    const [file = '', ...others] = Object.keys((configMap as unknown as IConfigMap | undefined)?.data ?? {});
    expect(others).toEqual([]);
    const gateway = manifests.find(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'tollgate',
    );
    const pod = (gateway as unknown as IDeployment | undefined)?.spec?.template.spec;
    const [container] = pod?.containers ?? [];
    const mount = container?.volumeMounts?.find(({ name }) => name === 'configuration');
    expect(container?.env).toContainEqual({ name: 'CONFIG_FILE', value: `${mount?.mountPath}/${file}` });
    expect(pod?.volumes).toContainEqual({
      name: 'configuration',
      configMap: { name: configMap?.metadata.name },
    });
    const known = Object.values(SETTINGS).map(({ variable }) => variable);
    for (const { name } of container?.env ?? []) expect(known).toContain(name);
  });
});
