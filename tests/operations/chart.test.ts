import { globSync, readFileSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { Ajv } from 'ajv';
import { parse } from 'yaml';
import { SETTINGS } from '../../src/settings/settings.ts';
import { CHART_GUIDE, chartGuideWithValues } from '../support/chart-guide.ts';
import { findHelm, lintChart, renderChart } from './helm.ts';
import { faultsOf } from './kubernetes-schemas.ts';
import { type Manifest, renderBase } from './kustomize.ts';

const EXAMPLES = globSync('k8s/chart/examples/*.yaml').toSorted();
/** Components of k8s that the chart has as values, with these. */
const COMPONENTS = [
  [[], []],
  [['authorize'], ['--set', 'authorize.enabled=true']],
  [['autoscaling'], ['--set', 'autoscaling.enabled=true']],
  [
    ['monitoring'],
    ['serviceMonitor', 'prometheusRule', 'dashboard'].flatMap((each) => ['--set', `${each}.enabled=true`]),
  ],
  [['configuration'], ['--set-file', 'configuration.content=k8s/components/configuration/gateway.yaml']],
] as const;

const schema = JSON.parse(readFileSync('k8s/chart/values.schema.json', 'utf8'));
const validate = new Ajv({ strict: false }).compile(schema);
const read = (file: string) => parse(readFileSync(file, 'utf8'));
const helm = await findHelm();

describe('the values of the chart', () => {
  it('meet their schema, and so do those of each example', () => {
    for (const file of ['k8s/chart/values.yaml', ...EXAMPLES]) {
      validate(read(file));
      expect([file, validate.errors]).toEqual([file, null]);
    }
    expect(EXAMPLES.length).toBeGreaterThanOrEqual(8);
  });

  it('are each known to the schema, which knows no others', () => {
    const { global: _ofHelm, enabled: _ofParent, ...properties } = schema.properties;
    expect(Object.keys(read('k8s/chart/values.yaml')).toSorted()).toEqual(Object.keys(properties).toSorted());
    expect(validate({ replica: 2 })).toBe(false);
    expect(validate({ image: { repo: 'a' } })).toBe(false);
  });

  it('may have what a chart that has this one as a dependency sets: `global`, and `enabled` as its condition', () => {
    expect(validate({ global: { region: 'eu' }, enabled: true })).toBe(true);
    expect(validate({ enabled: 'yes' })).toBe(false);
  });

  it('have no secrets among the settings, and no ports, which belong to the chart', () => {
    const secrets = Object.values(SETTINGS)
      .filter((setting) => setting.secret)
      .map(({ variable }) => variable);
    // The exporter of traces reads these itself: the credential of the collector.
    const headers = ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'];
    for (const name of [...secrets, ...headers, 'PORT', 'ADMIN_PORT', 'OPS_PORT', 'AUTHORIZE_PORT']) {
      expect([name, validate({ settings: { [name]: 'x' } })]).toEqual([name, false]);
    }
    expect(validate({ settings: { BACKEND_URL: 'https://api.example.com', WORKERS: 2 } })).toBe(true);
  });

  it('have as secretSettings those that the gateway reads from files, and no others', () => {
    const readFromFiles = Object.values(SETTINGS)
      .filter(({ parseFile }) => parseFile !== undefined)
      .map(({ variable }) => variable);
    expect(schema.properties.secretSettings.items.enum).toEqual(readFromFiles.toSorted());
    expect(validate({ secretSettings: ['TRUSTED_PROXIES'] })).toBe(false);
  });

  it('have metrics read often enough for the alerts, which look at two minutes: once a minute at least', () => {
    const accepted = (interval: string) => validate({ serviceMonitor: { interval } });
    expect(['500ms', '1s', '15s', '59s', '60s', '1m'].filter((each) => !accepted(each))).toEqual([]);
    expect(['0s', '61s', '100s', '2m', '1h', '15'].filter(accepted)).toEqual([]);
  });

  it('are described one by one in docs/chart.md (`npm run chart-guide`)', () => {
    expect(readFileSync(CHART_GUIDE, 'utf8')).toBe(chartGuideWithValues());
  });

  it('are of the version of the package', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
    expect(read('k8s/chart/Chart.yaml')).toMatchObject({ version, appVersion: version });
  });
});

if (helm === undefined) {
  describe('the rendered chart', () => {
    it.todo('was left out: there is no helm (`npm run check:chart` builds it where Go is)');
  });
} else {
  describe('the rendered chart', () => {
    const examples = new Map<string, readonly Manifest[]>();

    beforeAll(async () => {
      for (const file of EXAMPLES) {
        examples.set(file, await renderChart(helm, { args: ['--values', file] }));
      }
    }, 300_000);

    it('has nothing that `helm lint` finds', async () => {
      for (const file of EXAMPLES) await lintChart(helm, ['--values', file]);
    }, 120_000);

    it.each(COMPONENTS)(
      'is that of k8s/base with the components %j',
      async (components, args) => {
        const base = (await renderBase(components)).filter((each) => !belongsToNamespace(each));
        expect(comparable(await renderChart(helm, { args }))).toEqual(comparable(base));
      },
      120_000,
    );

    it.each(EXAMPLES)('meets the schemas of Kubernetes with %s', (file) => {
      for (const manifest of examples.get(file) ?? []) {
        expect([manifest.kind, manifest.metadata.name, faultsOf(manifest)]).toEqual([
          manifest.kind,
          manifest.metadata.name,
          [],
        ]);
      }
    });

    it('gives a load balancer that checks nodes the time to notice, and readiness until then', () => {
      const manifests = examples.get('k8s/chart/examples/load-balancer.yaml') ?? [];
      const object = (kind: string, name: string) =>
        manifests.find((each) => each.kind === kind && each.metadata.name === name);
      expect(object('Service', 'tollgate')?.spec).toMatchObject({ externalTrafficPolicy: 'Local' });
      const settings = object('ConfigMap', 'tollgate-settings')?.data as Record<string, string> | undefined;
      const delayMs = Number(settings?.SHUTDOWN_DELAY_MS);
      const { spec } = object('Deployment', 'tollgate') as unknown as PodTemplate;
      const probe = spec.template.spec.containers[0]?.readinessProbe;
      const noticedMs = Number(probe?.periodSeconds) * Number(probe?.failureThreshold) * 1000;
      // A replica that is not ready any more gets no connection, also while the load balancer still sends some to its node.
      expect(noticedMs).toBeGreaterThan(delayMs);
      expect(delayMs).toBeGreaterThanOrEqual(30_000);
    });

    it('lets an Application Load Balancer check the port that its annotation names', () => {
      const manifests = examples.get('k8s/chart/examples/aws-alb.yaml') ?? [];
      const object = (kind: string, name: string) =>
        manifests.find((each) => each.kind === kind && each.metadata.name === name);
      const annotations = object('Ingress', 'tollgate')?.metadata.annotations;
      const port = annotations?.['alb.ingress.kubernetes.io/healthcheck-port'];
      // By default it takes HTTP alone, from within the network alone.
      expect(annotations).toMatchObject({
        'alb.ingress.kubernetes.io/listen-ports': '[{"HTTPS": 443}]',
        'alb.ingress.kubernetes.io/scheme': 'internet-facing',
      });
      const { spec } = object('Deployment', 'tollgate') as unknown as PodTemplate;
      const checked = spec.template.spec.containers[0]?.ports?.find(
        ({ containerPort }) => String(containerPort) === port,
      );
      expect(object('NetworkPolicy', 'tollgate-ingress')?.spec).toMatchObject({
        ingress: expect.arrayContaining([
          {
            from: expect.arrayContaining([
              { ipBlock: { cidr: '10.0.0.0/24' } },
              { ipBlock: { cidr: '10.0.1.0/24' } },
            ]),
            ports: [{ protocol: 'TCP', port: checked?.name }],
          },
        ]),
      });
      expect(object('Deployment', 'tollgate')?.spec).toMatchObject({ minReadySeconds: 30 });
    });

    it('names no user and no group on OpenShift, which gives pods theirs', () => {
      const pods = (examples.get('k8s/chart/examples/openshift.yaml') ?? []).flatMap(({ kind, spec }) => {
        if (kind === 'Pod') return [spec];
        const template = (spec as Partial<PodTemplate['spec']> | undefined)?.template;
        return template === undefined ? [] : [template.spec];
      });
      expect(pods).toHaveLength(3);
      const securityContext = { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } };
      for (const pod of pods) expect(pod).toHaveProperty('securityContext', securityContext);
    });

    it('has the logo of the portal where the setting says, for the gateway and its migrations', () => {
      const manifests = examples.get('k8s/chart/examples/portal.yaml') ?? [];
      const settings = manifests.find(({ metadata }) => metadata.name === 'tollgate-settings')?.data;
      const file = (settings as Record<string, string>).PORTAL_LOGO_FILE ?? '';
      expect(settings).toMatchObject({ PORTAL: 'on', PORTAL_COLOR: '#0b5fff' });
      for (const kind of ['Deployment', 'Job']) {
        const { spec } = manifests.find((each) => each.kind === kind) as unknown as PodTemplate;
        const { containers, volumes } = spec.template.spec;
        const mount = containers[0]?.volumeMounts.find(({ mountPath }) => mountPath === dirname(file));
        expect([kind, mount?.readOnly]).toEqual([kind, true]);
        expect(volumes).toContainEqual({ name: mount?.name, configMap: { name: 'tollgate-portal' } });
        // A mount within another one that can't be written fails when the container starts.
        const paths = containers[0]?.volumeMounts.map(({ mountPath }) => mountPath) ?? [];
        expect(paths.filter((path) => paths.some((other) => path.startsWith(`${other}/`)))).toEqual([]);
      }
    });

    it('shares no object and no pod with another release in the namespace', async () => {
      const [one, other] = [await renderChart(helm), await renderChart(helm, { release: 'second' })];
      const names = new Set(one.map(({ kind, metadata }) => `${kind}/${metadata.name}`));
      expect(other.filter(({ kind, metadata }) => names.has(`${kind}/${metadata.name}`))).toEqual([]);
      const selectors = selectorsOf(other);
      expect(selectors.length).toBeGreaterThan(5);
      for (const selector of selectors) {
        expect(selector).toMatchObject({ 'app.kubernetes.io/instance': 'second' });
      }
    }, 120_000);

    it('writes numbers as the gateway reads them', async () => {
      const args = ['--set', 'settings.A=100000000,settings.B=0.25,settings.C=true'];
      const manifests = await renderChart(helm, { args });
      const settings = manifests.find(({ metadata }) => metadata.name === 'tollgate-settings');
      expect(settings?.data).toMatchObject({ A: '100000000', B: '0.25', C: 'true' });
    }, 120_000);

    it.each([0, 3, null])(
      'asks for as many replicas as the value says: %p',
      async (replicas) => {
        const manifests = await renderChart(helm, { args: ['--set', `replicas=${replicas}`] });
        const deployment = manifests.find(({ kind }) => kind === 'Deployment') as {
          spec?: { replicas?: number };
        };
        expect(deployment.spec?.replicas).toBe(replicas ?? undefined);
      },
      120_000,
    );

    it('lets the pod of `helm test` run where the others run, and reach the public port when few may', async () => {
      const from = { namespaceSelector: { matchLabels: { a: 'b' } } };
      const manifests = await renderChart(helm, {
        args: [
          '--set-json',
          `networkPolicy.publicFrom=${JSON.stringify([from])}`,
          '--set',
          'podLabels.team=edge,nodeSelector.pool=edge,tolerations[0].key=edge',
        ],
      });
      const named = (name: string) => manifests.find(({ metadata }) => metadata.name === name);
      const pod = named('tollgate-test');
      expect(pod?.metadata.labels).toMatchObject({ team: 'edge' });
      expect(pod?.spec).toMatchObject({ nodeSelector: { pool: 'edge' }, tolerations: [{ key: 'edge' }] });
      const policy = named('tollgate-ingress')?.spec as
        | { ingress: { from: { podSelector?: { matchLabels: object } }[] }[] }
        | undefined;
      const allowed = policy?.ingress[0]?.from;
      expect(allowed).toEqual([from, { podSelector: { matchLabels: expect.anything() } }]);
      expect(pod?.metadata.labels).toMatchObject(allowed?.[1]?.podSelector?.matchLabels ?? {});
    }, 120_000);

    it('lets none reach the port for decisions where it is not said who may', async () => {
      const args = ['--set', 'authorize.enabled=true'];
      const [some, none] = [
        await renderChart(helm, { args }),
        await renderChart(helm, { args: [...args, '--set', 'authorize.from=null'] }),
      ].map((manifests) =>
        manifests.flatMap(({ kind, spec }) =>
          kind === 'NetworkPolicy'
            ? ((spec as { ingress?: { from: unknown; ports: unknown }[] }).ingress ?? [])
            : [],
        ),
      );
      const toDecisions = { ports: [{ protocol: 'TCP', port: 'authorize' }] };
      expect(some).toContainEqual(expect.objectContaining(toDecisions));
      expect(none).not.toContainEqual(expect.objectContaining(toDecisions));
      expect(none?.filter(({ from }) => from === null)).toEqual([]);
    }, 120_000);

    it('gives each pod a label of its team once, and leaves it the labels by which it is found', async () => {
      const labels = 'app\\.kubernetes\\.io/part-of=payments,podLabels.app\\.kubernetes\\.io/component=x';
      // Throws where a key is there twice.
      const manifests = await renderChart(helm, { args: ['--set', `podLabels.${labels}`] });
      const [spec] = manifests.flatMap((one) =>
        one.kind === 'Deployment'
          ? [one.spec as { selector: { matchLabels: object }; template: { metadata: { labels: object } } }]
          : [],
      );
      expect(spec?.template.metadata.labels).toMatchObject({
        'app.kubernetes.io/part-of': 'payments',
        ...spec?.selector.matchLabels,
      });
    }, 120_000);

    it('says which value is wrong', async () => {
      for (const [value, words] of [
        ['settings.REDIS_URL=redis://x', '/settings/REDIS_URL'],
        ['settings.PORT=80', '/settings/PORT'],
        ['replica=2', 'replica'],
        ['image.pullPolicy=Sometimes', 'pullPolicy'],
        ['ingress.enabled=true', 'ingress.hosts: at least one host is needed'],
        ['httpRoute.enabled=true', 'httpRoute.parentRefs'],
      ] as const) {
        await expect(renderChart(helm, { args: ['--set', value] })).rejects.toThrow(words);
      }
    }, 120_000);

    it.each(['prometheusRule', 'dashboard'])(
      'fails where it was copied without its links, rather than making an empty object: %s',
      async (name) => {
        const copy = await mkdtemp(join(tmpdir(), 'tollgate-chart-'));
        try {
          await cp('k8s/chart', copy, { recursive: true, filter: (path) => !path.includes('chart/files') });
          const rendered = renderChart(helm, { chart: copy, args: ['--set', `${name}.enabled=true`] });
          await expect(rendered).rejects.toThrow('take the chart of a release');
        } finally {
          await rm(copy, { recursive: true });
        }
      },
      120_000,
    );

    it('leaves alone on an upgrade what Kubernetes does not let change', async () => {
      const first = await renderChart(helm, { args: ['--values', 'k8s/chart/examples/minimal.yaml'] });
      for (const file of EXAMPLES) {
        expect([basename(file), fixedFields(examples.get(file) ?? [])]).toEqual([
          basename(file),
          fixedFields(first),
        ]);
      }
      // As the first release has them.
      const labels = { name: 'tollgate', instance: 'tollgate', component: 'gateway' };
      const selector = {
        matchLabels: Object.fromEntries(
          Object.entries(labels).map(([name, value]) => [`app.kubernetes.io/${name}`, value]),
        ),
      };
      expect(fixedFields(first)).toEqual([
        { kind: 'Service', name: 'tollgate' },
        { kind: 'Service', name: 'tollgate-admin' },
        { kind: 'Service', name: 'tollgate-ops', clusterIP: 'None' },
        { kind: 'Deployment', name: 'tollgate', selector },
      ]);
    });
  });
}

/** What is looked at of a Deployment and of a Job. */
interface PodTemplate {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly {
          readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
          readonly readinessProbe?: { readonly periodSeconds: number; readonly failureThreshold: number };
          readonly volumeMounts: readonly {
            readonly name: string;
            readonly mountPath: string;
            readonly readOnly?: boolean;
          }[];
        }[];
        readonly volumes: readonly object[];
      };
    };
  };
}

function belongsToNamespace({ kind, metadata }: Manifest): boolean {
  return kind === 'Namespace' || metadata.name === 'deny-all';
}

/**
 * Labels and annotations that only one of both has: Helm's bookkeeping, what makes a change of the settings roll the Deployment, and what
 * Flux and Argo CD need to know of manifests that they render themselves.
 */
const OF_ONE_SIDE =
  /^(helm\.sh\/.*|checksum\/.*|kustomize\.toolkit\.fluxcd\.io\/.*|argocd\.argoproj\.io\/.*|app\.kubernetes\.io\/(instance|managed-by)|app\.kubernetes\.io\/part-of)$/;

/** Objects by kind and name, without what names them differently: namespace, hashes in names, the image's tag. */
function comparable(manifests: readonly Manifest[]): Record<string, unknown> {
  const entries = manifests
    .filter(({ metadata }) => !metadata.name.startsWith('tollgate-test'))
    .map((manifest) => {
      const name = withoutHash(manifest.metadata.name);
      // Helm gives each object the name of the chart as a label, kustomize those that are written down.
      const { 'app.kubernetes.io/name': _chart, ...labels } = manifest.metadata.labels ?? {};
      const object = strip({ ...manifest, metadata: { ...manifest.metadata, labels } });
      return [`${manifest.kind}/${name}`, object] as const;
    });
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function withoutHash(name: string): string {
  return name.replace(/^(tollgate-(?:settings|configuration))-[a-z0-9]{10}$/, '$1');
}

function strip(value: unknown): unknown {
  if (typeof value === 'string') {
    // kustomize writes folded lines in its own way.
    const text = withoutHash(value).replace(/^tollgate:[\w.-]+$/, 'tollgate');
    return text.replaceAll(/\s+/g, ' ').trim();
  }
  if (Array.isArray(value)) return value.map(strip);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value)
    .filter(([key]) => key !== 'namespace' && !OF_ONE_SIDE.test(key))
    // A map that had nothing else is as good as none.
    .map(([key, field]) => [key, strip(field)] as const)
    .filter(([, field]) => JSON.stringify(field) !== '{}');
  return Object.fromEntries(fields);
}

/** All selectors of pods, those of spread constraints included. */
function selectorsOf(value: unknown): readonly object[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, field]) => {
    if (['podSelector', 'labelSelector'].includes(key)) return [field.matchLabels];
    if (key === 'selector') return [field.matchLabels ?? field];
    return selectorsOf(field);
  });
}

/** Fields that the API server does not let change, so that an upgrade which has another value fails. */
function fixedFields(manifests: readonly Manifest[]): unknown {
  return manifests
    .filter(({ metadata }) => ['tollgate', 'tollgate-admin', 'tollgate-ops'].includes(metadata.name))
    .filter(({ kind }) => ['Deployment', 'Service'].includes(kind))
    .map(({ kind, metadata, spec }) => {
      const { selector, clusterIP } = spec as { selector: unknown; clusterIP?: string };
      return { kind, name: metadata.name, clusterIP, ...(kind === 'Deployment' ? { selector } : {}) };
    });
}
