import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { buildConsoleWhereOutdated } from '../support/console-build.ts';
import { scratchFolder } from '../support/scratch-folder.ts';

interface Sbom {
  readonly components: readonly {
    readonly 'bom-ref': string;
    readonly properties: readonly { readonly name: string }[];
  }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

const listed = ({ components }: Sbom) => components.map((component) => component['bom-ref']).toSorted();
const without = (list: readonly string[], others: readonly string[]) =>
  list.filter((each) => !others.includes(each));

describe('the SBOM of a release', () => {
  let sbom: Sbom;

  beforeAll(async () => {
    await buildConsoleWhereOutdated();
    const { stdout } = await promisify(execFile)('npm', ['run', '-s', 'sbom'], {
      maxBuffer: 64 * 1024 * 1024,
    });
    sbom = JSON.parse(stdout);
  });

  it('lists every package that is installed with Tollgate, also one that a tool uses', () => {
    expect(without(installed(), listed(sbom))).toEqual([]);
  });

  it('lists every package with code in the console or the portal, and no other tool', async () => {
    const bundled = [...(await bundledBy('production')), ...(await bundledBy('portal'))];
    expect(bundled).toEqual(expect.arrayContaining([expect.stringMatching(/^echarts@/)]));
    expect(bundled).toEqual(expect.arrayContaining([expect.stringMatching(/^preact@/)]));
    expect(without(bundled, listed(sbom))).toEqual([]);
    expect(without(listed(sbom), [...bundled, ...installed()])).toEqual([]);
  });

  it('marks none as for development, and has no dependency on a package left out', () => {
    const { components, dependencies } = sbom;
    expect(
      components.filter(({ properties }) => properties.some(({ name }) => /development/.test(name))),
    ).toEqual([]);
    const named = dependencies.flatMap(({ dependsOn }) => dependsOn);
    expect(without(named, listed(sbom))).toEqual([]);
  });
});

/** What `npm install` of the package brings, by the lock file. */
function installed(): readonly string[] {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  return Object.entries<{ readonly version: string; readonly dev?: boolean }>(packages)
    .filter(([place, { dev }]) => place !== '' && dev !== true)
    .map(([place, { version }]) => `${place.split('node_modules/').at(-1)}@${version}`);
}

/** The packages of all modules that Vite bundles for the console or, in the mode `portal`, for the pages of consumers. */
async function bundledBy(mode: 'production' | 'portal'): Promise<readonly string[]> {
  const { build, loadConfigFromFile } = await import('vite');
  const { config } = (await loadConfigFromFile({ command: 'build', mode }, 'vite.config.ts')) ?? {};
  const modules = new Set<string>();
  await build({
    ...config,
    configFile: false,
    mode,
    logLevel: 'error',
    // In place of what writes into dist.
    plugins: [
      {
        name: 'modules-of-the-bundle',
        generateBundle(_, bundle) {
          for (const file of Object.values(bundle))
            if (file.type === 'chunk') for (const path of file.moduleIds) modules.add(path);
        },
      },
    ],
    build: { ...config?.build, outDir: join(await scratchFolder(), mode), write: false },
  });
  const paths = [...modules].filter((path) => !path.startsWith('\0') && path.includes('/node_modules/'));
  return [...new Set(paths.map(packageOf))];
}

/** `name@version` by the nearest package.json that has both. */
function packageOf(path: string): string {
  for (let folder = dirname(path); folder.includes('/node_modules/'); folder = dirname(folder)) {
    const { name, version } = manifestIn(folder);
    if (name !== undefined && version !== undefined) return `${name}@${version}`;
  }
  throw new Error(`${path} is of no package`);
}

function manifestIn(folder: string): { readonly name?: string; readonly version?: string } {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  } catch {
    return {};
  }
}
