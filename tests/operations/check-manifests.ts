import { readFile } from 'node:fs/promises';
import { faultsOf } from './kubernetes-schemas.ts';
import { type Manifest, OVERLAYS, parseManifests, renderOverlay, renderWithComponent } from './kustomize.ts';

/** Files that are no part of an overlay: they hold what each installation decides for itself. */
const EXAMPLES = [
  'k8s/examples/authorize/envoy-gateway.yaml',
  'k8s/examples/authorize/ingress-nginx.yaml',
  'k8s/examples/authorize/istio.yaml',
  'k8s/examples/authorize/traefik.yaml',
  'k8s/overlays/production/secret.example.yaml',
  'k8s/overlays/production/ingress.example.yaml',
];

/** `npm run check:manifests`: every overlay renders, and every object in it meets the schema of its kind to the letter. */
const rendered = await Promise.all(
  OVERLAYS.map(async (overlay) => ({
    source: `k8s/overlays/${overlay}`,
    manifests: await renderOverlay(overlay),
  })),
);
const withComponents = await Promise.all(
  ['configuration', 'authorize'].map(async (component) => ({
    source: `k8s/components/${component}`,
    manifests: await renderWithComponent(component),
  })),
);
const examples = await Promise.all(
  EXAMPLES.map(async (source) => ({ source, manifests: parseManifests(await readFile(source, 'utf8')) })),
);
const faults = [...rendered, ...withComponents, ...examples].flatMap(({ source, manifests }) =>
  manifests.flatMap((manifest) =>
    faultsOf(manifest).map((fault) => `${source}: ${named(manifest)} ${fault}`),
  ),
);
const count = [...rendered, ...withComponents, ...examples].reduce(
  (sum, { manifests }) => sum + manifests.length,
  0,
);
process.stdout.write(
  faults.length === 0 ? `${count} manifests meet their schemas\n` : `${faults.join('\n')}\n`,
);
process.exitCode = faults.length === 0 ? 0 : 1;

function named({ kind, metadata }: Manifest): string {
  return `${kind}/${metadata.name}`;
}
