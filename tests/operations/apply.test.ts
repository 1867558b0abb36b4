import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { findHelm, renderChart } from './helm.ts';
import { type KubeApiserver, startKubeApiserver } from './kube-apiserver.ts';
import { type Manifest, OVERLAYS, parseManifests } from './kustomize.ts';

const run = promisify(execFile);

/** A directory with etcd, kube-apiserver and kubectl (`setup-envtest use -p path`). */
const ASSETS = process.env.KUBE_ASSETS;
const NAMESPACE = ['--namespace', 'tollgate'];
/** The way `production` is applied by those who upgrade: by hand or by a tool of either kind. */
const WAYS = [
  ['client-side', []],
  ['server-side', ['--server-side']],
] as const;

/** As their operators would have installed them. Objects are checked against the real schemas in `npm run check`. */
const DEFINITIONS = [
  ['monitoring.coreos.com', 'ServiceMonitor'],
  ['monitoring.coreos.com', 'PrometheusRule'],
  ['gateway.networking.k8s.io', 'HTTPRoute'],
].map(([group, kind = '']) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: `${kind.toLowerCase()}s.${group}`,
    // What groups below k8s.io need.
    annotations: { 'api-approved.kubernetes.io': 'unapproved, for a test' },
  },
  spec: {
    group,
    names: { kind, plural: `${kind.toLowerCase()}s`, singular: kind.toLowerCase() },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
    ],
  },
}));
const CHART_EXAMPLES = globSync('k8s/chart/examples/*.yaml').toSorted();

let server: KubeApiserver;
/** A copy of `k8s/`, to be edited as an operator would. */
let k8s: string;

async function begin(): Promise<void> {
  if (ASSETS === undefined) return;
  k8s = await mkdtemp(join(tmpdir(), 'tollgate-k8s-'));
  await cp('k8s', k8s, { recursive: true });
  server = await startKubeApiserver(ASSETS);
  await server.kubectl(
    ['apply', '-f', '-'],
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: DEFINITIONS }),
  );
  await server.kubectl(['wait', '--for=condition=established', 'crd', '--all', '--timeout=60s']);
}

async function end(): Promise<void> {
  if (ASSETS === undefined) return;
  await server.stop();
  await rm(k8s, { recursive: true, force: true });
}

const overlayAt = (overlay: string): string => join(k8s, 'overlays', overlay);
const apply = (overlay: string, ...flags: readonly string[]): Promise<string> =>
  server.kubectl(['apply', ...flags, '-k', overlayAt(overlay)]);

/** The line of the runbook that makes a release of the production overlay. */
async function release(version: string): Promise<void> {
  const runbook = await readFile('docs/runbook.md', 'utf8');
  const line = /^sed -i .*kustomization\.yaml$/m.exec(runbook)?.[0];
  if (line === undefined) throw new Error('the runbook has no line that makes a release');
  await run('sh', ['-c', line.replaceAll('k8s/', `${k8s}/`)], {
    env: { PATH: process.env.PATH, VERSION: version },
  });
}

async function jobs(): Promise<readonly string[]> {
  const names = await server.kubectl([...NAMESPACE, 'get', 'jobs', '-o', 'name']);
  return names.trim().split('\n').toSorted();
}

interface PodSpec {
  readonly volumes?: readonly object[];
  readonly serviceAccountName?: string;
  readonly priorityClassName?: string;
}

/** The part of a Deployment's, StatefulSet's or Job's spec that makes pods. */
interface PodMaker {
  readonly template?: { readonly metadata: object; readonly spec: PodSpec };
  readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[];
}

interface Pod {
  readonly spec: PodSpec;
}

/** Every pod that the objects ask for, as a separate pod, which is what Pod Security looks at. */
function podsOf(manifests: readonly Manifest[]): readonly Pod[] {
  return manifests.flatMap(({ kind, metadata, spec }) => {
    const { template, volumeClaimTemplates = [] } = (spec ?? {}) as PodMaker;
    if (template === undefined) return [];
    const name = `${kind}-${metadata.name}`.toLowerCase();
    const claims = volumeClaimTemplates.map(({ metadata: claim }) => ({
      name: claim.name,
      persistentVolumeClaim: { claimName: claim.name },
    }));
    const volumes = [...(template.spec.volumes ?? []), ...claims];
    return [
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { ...template.metadata, name },
        spec: { ...template.spec, volumes },
      },
    ];
  });
}

/** What the pods of a chart refer to in its namespace and its cluster, as an operator has it already. */
async function addWhatPodsNeed(manifests: readonly Manifest[], namespace: string): Promise<void> {
  const made = manifests.filter(({ kind }) => kind === 'ServiceAccount').map(({ metadata }) => metadata.name);
  const pods = podsOf(manifests).map(({ spec }) => spec);
  const accounts = pods.map(({ serviceAccountName }) => serviceAccountName ?? 'default');
  for (const account of new Set(accounts).difference(new Set(made)))
    await server.kubectl(['--namespace', namespace, 'create', 'serviceaccount', account]);
  for (const name of new Set(pods.flatMap(({ priorityClassName }) => priorityClassName ?? [])))
    await server.kubectl(['create', 'priorityclass', name, '--value=1000']);
}

/** Without its controllers a cluster has no default account. */
async function addDefaultAccount(): Promise<void> {
  await server.kubectl([...NAMESPACE, 'create', 'serviceaccount', 'default']);
}

/** Whether a namespace with a Pod Security profile lets in what the objects would start. */
async function admitPods(manifests: readonly Manifest[], namespace = 'tollgate'): Promise<void> {
  const pods = podsOf(manifests);
  expect(pods.length).toBeGreaterThan(0);
  for (const pod of pods)
    await server.kubectl(
      ['--namespace', namespace, 'create', '--dry-run=server', '-f', '-'],
      JSON.stringify(pod),
    );
}

async function versions(): Promise<string> {
  const kinds = 'deployments,statefulsets,jobs,services,configmaps,networkpolicies,poddisruptionbudgets';
  const columns = 'custom-columns=KIND:.kind,NAME:.metadata.name,VERSION:.metadata.resourceVersion';
  return server.kubectl([...NAMESPACE, 'get', kinds, '-o', columns]);
}

if (ASSETS === undefined) {
  describe('a real kube-apiserver', () => {
    it.todo('was left out: KUBE_ASSETS has no etcd, kube-apiserver and kubectl');
  });
} else {
  describe.each(OVERLAYS)('a real kube-apiserver with the overlay %s', (overlay) => {
    beforeAll(begin, 300_000);
    afterAll(end);

    it('accepts every object without a warning', async () => {
      expect(await apply(overlay)).toContain('deployment.apps/tollgate created');
    });

    it('lets every pod in under the restricted profile of Pod Security', async () => {
      await addDefaultAccount();
      await admitPods(parseManifests(await server.kubectl(['kustomize', overlayAt(overlay)])));
    });

    it('finds nothing to change when it is applied again, client-side or server-side', async () => {
      const first = await versions();
      const again = (await apply(overlay)).trim().split('\n');
      // kubectl sends a budget's selector each time, changed or not (its patch strategy is `replace`): only the server knows that nothing changed.
      expect(again.filter((line) => !line.endsWith(' unchanged'))).toEqual([
        'poddisruptionbudget.policy/tollgate configured',
      ]);
      expect(await versions()).toBe(first);
      await apply(overlay, '--server-side', '--force-conflicts');
      const before = await versions();
      await apply(overlay, '--server-side', '--force-conflicts');
      expect(await versions()).toBe(before);
    });
  });

  describe.each(WAYS)('a release that is applied %s', (_way, flags) => {
    beforeAll(begin, 300_000);
    afterAll(end);

    it('migrates before anything but the namespace and the Secret is there', async () => {
      await server.kubectl(['create', 'namespace', 'tollgate']);
      await addDefaultAccount();
      await apply('production', ...flags, '-l', 'app.kubernetes.io/component=migrate');
      const policies = await server.kubectl([...NAMESPACE, 'get', 'networkpolicies', '-o', 'name']);
      expect(policies.trim()).toBe('networkpolicy.networking.k8s.io/tollgate-migrate-egress');
      expect(await jobs()).toEqual(['job.batch/tollgate-migrate-1-0-0']);
    });

    it('follows the one before, with its own migrate Job', async () => {
      // The namespace was made by hand, which client-side apply says in a warning once.
      await server.kubectl([
        'annotate',
        'namespace',
        'tollgate',
        'kubectl.kubernetes.io/last-applied-configuration={}',
      ]);
      await apply('production', ...flags);
      await release('1.1.0');
      await apply('production', ...flags);
      expect(await jobs()).toEqual(['job.batch/tollgate-migrate-1-0-0', 'job.batch/tollgate-migrate-1-1-0']);
      for (const object of ['job/tollgate-migrate-1-1-0', 'deployment/tollgate']) {
        const path = 'jsonpath={.spec.template.spec.containers[0].image}';
        expect(await server.kubectl([...NAMESPACE, 'get', object, '-o', path])).toBe(
          'registry.example.com/tollgate:1.1.0',
        );
      }
    });

    it('with a changed setting makes a new ConfigMap and leaves the migrate Job alone', async () => {
      const file = join(overlayAt('production'), 'kustomization.yaml');
      const text = await readFile(file, 'utf8');
      expect(text).toContain('LOG_LEVEL=info');
      await writeFile(file, text.replace('LOG_LEVEL=info', 'LOG_LEVEL=warn'));
      await apply('production', ...flags);
      expect(await jobs()).toHaveLength(2);
      const maps = await server.kubectl([...NAMESPACE, 'get', 'configmaps', '-o', 'name']);
      expect(maps.match(/tollgate-settings-/g)).toHaveLength(2);
    });
  });

  describe('the production overlay over the base', () => {
    beforeAll(begin, 300_000);
    afterAll(end);

    it('keeps the number of replicas that the autoscaler has chosen', async () => {
      await server.kubectl(['apply', '-k', join(k8s, 'base')]);
      await server.kubectl([...NAMESPACE, 'scale', 'deployment/tollgate', '--replicas=5']);
      await apply('production');
      await apply('production');
      const replicas = await server.kubectl([
        ...NAMESPACE,
        'get',
        'deployment/tollgate',
        '-o',
        'jsonpath={.spec.replicas}',
      ]);
      expect(replicas).toBe('5');
    });
  });

  describe('a real kube-apiserver with the chart', () => {
    beforeAll(begin, 300_000);
    afterAll(end);

    it.each(CHART_EXAMPLES)(
      'accepts every object of %s, and its pods under the restricted profile',
      async (file) => {
        const helm = await findHelm();
        if (helm === undefined) throw new Error('There is no helm: `npm run check:chart` builds it.');
        const namespace = basename(file, '.yaml');
        const manifests = await renderChart(helm, { args: ['--values', file, '--namespace', namespace] });
        await server.kubectl(['create', 'namespace', namespace]);
        await server.kubectl([
          ...['label', 'namespace', namespace],
          'pod-security.kubernetes.io/enforce=restricted',
        ]);
        // Pods are helm's tests, which need their account first.
        const objects = manifests.filter(({ kind }) => kind !== 'Pod');
        await addWhatPodsNeed(objects, namespace);
        await server.kubectl(
          ['--namespace', namespace, 'apply', '--server-side', '--validate=strict', '-f', '-'],
          JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
        );
        await admitPods(objects, namespace);
      },
    );
  });
}
