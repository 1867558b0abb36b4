import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

interface Component {
  readonly 'bom-ref': string;
  readonly scope: string;
  readonly properties: readonly { readonly name: string }[];
}

interface Bom {
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/** npm's mark of a package that only `devDependencies` lead to. */
const DEVELOPMENT = 'cdx:npm:package:development';

// `npm run sbom`: a CycloneDX document of all packages that are shipped: those that are installed, and those that Vite put into the console and
// the portal. `npm sbom --omit dev` would also leave out what is installed if a development tool needs it, too (npm/cli#7909).
const everything: Bom = JSON.parse(
  execFileSync('npm', ['sbom', '--sbom-format', 'cyclonedx'], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  }),
);
const bundled = new Set(['console', 'portal'].flatMap(bundledPackages));
const isBundled = (component: Component) => bundled.has(component['bom-ref']);
const isDevelopment = ({ properties }: Component) => properties.some(({ name }) => name === DEVELOPMENT);

const known = new Set(everything.components.map((component) => component['bom-ref']));
const strange = [...bundled].filter((ref) => !known.has(ref));
if (strange.length > 0) throw new Error(`dist holds ${strange.join(', ')}: npm run build:console`);

const components = everything.components
  .filter((component) => isBundled(component) || !isDevelopment(component))
  .map((component) => (isDevelopment(component) ? asShipped(component) : component));
const shipped = new Set(components.map((component) => component['bom-ref']));
const dependencies = everything.dependencies
  .filter(({ ref }) => shipped.has(ref) || !known.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => shipped.has(other)) }));
process.stdout.write(`${JSON.stringify({ ...everything, components, dependencies }, null, 2)}\n`);

/** `name@version` of each package with a module in the bundle, by the headings of the notices that Vite writes beside it. */
function bundledPackages(page: string): readonly string[] {
  const notices = readFileSync(`dist/${page}/licenses.md`, 'utf8');
  const found = [...notices.matchAll(/^## (\S+) - (\d\S*)(?: \(.+\))?$/gm)];
  if (found.length === 0) throw new Error(`dist/${page}/licenses.md names no package: has its form changed?`);
  return found.map(([, name, version]) => `${name}@${version}`);
}

function asShipped(component: Component): Component {
  return {
    ...component,
    scope: 'required',
    properties: component.properties.filter(({ name }) => name !== DEVELOPMENT),
  };
}
