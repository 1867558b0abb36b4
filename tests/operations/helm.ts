import { execFile } from 'node:child_process';
import { access, mkdir } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { promisify } from 'node:util';
import { type Manifest, parseManifests } from './kustomize.ts';

const run = promisify(execFile);

/** Go builds it from its source, since no other registry here has it: some minutes on two cores, once. */
const HELM_MODULE = 'helm.sh/helm/v4/cmd/helm@v4.3.0';
const BUILT = resolve(import.meta.dirname, '../../node_modules/.cache/tollgate-helm/helm');
const CHART = 'k8s/chart';

/** The helm that was built for this clone, otherwise the one on the PATH; undefined where there is none. */
export async function findHelm(): Promise<string | undefined> {
  for (const program of [BUILT, 'helm']) {
    const found = await run(program, ['version', '--short']).then(
      () => true,
      () => false,
    );
    if (found) return program;
  }
  return undefined;
}

/** Builds helm unless there is one. Throws with Go's own words where that fails. */
export async function installHelm(): Promise<void> {
  if ((await findHelm()) !== undefined) return;
  await mkdir(dirname(BUILT), { recursive: true });
  await run('go', ['install', '-ldflags=-s -w', HELM_MODULE], {
    env: { ...process.env, GOBIN: dirname(BUILT) },
  });
  await access(BUILT);
}

/** What helm would install. Rejects with helm's own words, e.g. about a value that the schema does not allow. */
export async function renderChart(
  helm: string,
  {
    release = 'tollgate',
    chart = CHART,
    args = [],
  }: { readonly release?: string; readonly chart?: string; readonly args?: readonly string[] } = {},
): Promise<readonly Manifest[]> {
  const words = ['template', release, chart, '--namespace', 'tollgate', '--no-hooks=false', ...args];
  const { stdout } = await run(helm, words, { maxBuffer: 16 * 1024 * 1024 });
  return parseManifests(stdout);
}

/** What `helm lint` says where it finds a fault; rejects then. */
export async function lintChart(helm: string, args: readonly string[] = []): Promise<void> {
  await run(helm, ['lint', '--strict', '--quiet', CHART, ...args]);
}
