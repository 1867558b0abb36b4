import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
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

/** As the Prometheus operator would have installed them. Their objects are checked against its schemas in `npm run check`. */
const OPERATOR = ['ServiceMonitor', 'PrometheusRule'].map((kind) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${kind.toLowerCase()}s.monitoring.coreos.com` },
  spec: {
    group: 'monitoring.coreos.com',
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
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: OPERATOR }),
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

/** The part of a Deployment's, StatefulSet's or Job's spec that makes pods. */
interface PodMaker {
  readonly template?: { readonly metadata: object; readonly spec: { readonly volumes?: readonly object[] } };
  readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[];
}

/** Every pod that the objects ask for, as a separate pod, which is what Pod Security looks at. */
function podsOf(manifests: readonly Manifest[]): readonly object[] {
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

/** Without its controllers a cluster has no default account. */
async function addDefaultAccount(): Promise<void> {
  await server.kubectl([...NAMESPACE, 'create', 'serviceaccount', 'default']);
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
      const pods = podsOf(parseManifests(await server.kubectl(['kustomize', overlayAt(overlay)])));
      expect(pods.length).toBeGreaterThan(0);
      for (const pod of pods) {
        await server.kubectl([...NAMESPACE, 'create', '--dry-run=server', '-f', '-'], JSON.stringify(pod));
      }
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
}
