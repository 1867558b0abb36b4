import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { onPath, requireProgram } from '../support/debian-package.ts';

const run = promisify(execFile);

/** The overlays under `k8s/overlays`. */
export const OVERLAYS = ['dev', 'production'] as const;

/** One object of the Kubernetes API, as it is written down. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly [field: string]: unknown;
}

/** Where Go is all there is: the version that the manifests were last rendered with by hand. Built once, then cached by Go. */
const FROM_GO = ['run', 'sigs.k8s.io/kustomize/kustomize/v5@v5.8.1', 'build'];

/** What an overlay sends to the cluster. Throws with kustomize's own words when it can't be rendered. */
export async function renderOverlay(overlay: (typeof OVERLAYS)[number]): Promise<readonly Manifest[]> {
  const [program, ...args] = await kustomize();
  const { stdout } = await run(program, [...args, `k8s/overlays/${overlay}`], {
    maxBuffer: 16 * 1024 * 1024,
  });
  return parseManifests(stdout);
}

/** The objects of a file of one or more YAML documents. Throws when it isn't YAML, or an object has no name or kind. */
export function parseManifests(text: string): readonly Manifest[] {
  return parseAllDocuments(text).map((document) => {
    const [fault] = document.errors;
    if (fault !== undefined) throw fault;
    const value: unknown = document.toJS();
    if (!isManifest(value)) throw new Error(`not a Kubernetes object: ${JSON.stringify(value)}`);
    return value;
  });
}

/** The command that renders a directory: kubectl or kustomize of the PATH, else Debian's kubectl, else kustomize through Go. */
async function kustomize(): Promise<readonly [string, ...string[]]> {
  const kubectl = await onPath('kubectl');
  if (kubectl !== undefined && (await isRecent(kubectl))) return [kubectl, 'kustomize'];
  const alone = await onPath('kustomize');
  if (alone !== undefined) return [alone, 'build'];
  const installed = await requireProgram('kubectl', 'kubernetes-client').catch(() => undefined);
  if (installed !== undefined && (await isRecent(installed))) return [installed, 'kustomize'];
  const go = await onPath('go');
  if (go !== undefined) return [go, ...FROM_GO];
  throw new Error(
    'The manifests are rendered by kubectl 1.27 or newer, kustomize 5, or Go: none of them is on the PATH.',
  );
}

/** kubectl carries a kustomize of its own, which knows `labels` with templates from version 5 on. */
async function isRecent(kubectl: string): Promise<boolean> {
  const { stdout } = await run(kubectl, ['version', '--client', '--output=json']);
  const version: unknown = JSON.parse(stdout);
  return (
    typeof version === 'object' &&
    version !== null &&
    'kustomizeVersion' in version &&
    Number(/^v(\d+)\./.exec(String(version.kustomizeVersion))?.[1]) >= 5
  );
}

function isManifest(value: unknown): value is Manifest {
  return (
    typeof value === 'object' &&
    value !== null &&
    'apiVersion' in value &&
    'kind' in value &&
    'metadata' in value &&
    typeof value.metadata === 'object' &&
    value.metadata !== null &&
    'name' in value.metadata
  );
}
