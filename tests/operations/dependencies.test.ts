import { readFile } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import { satisfies, subset } from 'semver';

interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly dev?: boolean;
  readonly license?: string;
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly engines?: { readonly node?: string };
}

/** The oldest Node that npm itself may run on where Tollgate is worked on; what is run comes with npm. */
const NODE_OF_NPM = '20.20.0';

/** What package-lock.json installs, by its place, without the project itself. */
async function lockedPackages(): Promise<readonly (readonly [place: string, locked: LockedPackage])[]> {
  const { packages } = JSON.parse(await readFile('package-lock.json', 'utf8')) as {
    packages: Record<string, LockedPackage>;
  };
  return Object.entries(packages).filter(([place]) => place !== '');
}

async function manifest(): Promise<{
  readonly engines: { readonly node: string };
  readonly dependencies: Record<string, string>;
  readonly optionalDependencies: Record<string, string>;
  readonly devDependencies: Record<string, string>;
}> {
  return JSON.parse(await readFile('package.json', 'utf8'));
}

describe('the lock file', () => {
  it('has an integrity hash for every package that an image or a test runs', async () => {
    const unhashed = (await lockedPackages()).filter(([, { integrity }]) => integrity === undefined);
    // Builds of development tools for other systems, which npm adds without a hash where the registry does not serve them.
    const strange = unhashed.filter(([, { dev, optional, os }]) => !(dev && optional && os));
    expect(strange.map(([place]) => place)).toEqual([]);
    expect((await lockedPackages()).length - unhashed.length).toBeGreaterThan(400);
  });

  it('has exact versions of everything that package.json names', async () => {
    const { dependencies, optionalDependencies, devDependencies } = await manifest();
    const named = { ...dependencies, ...optionalDependencies, ...devDependencies };
    expect(
      Object.entries(named).filter(
        ([, version]) => !/^(npm:[@a-z0-9/-]+@)?\d+\.\d+\.\d+(-[a-z0-9.]+)?$/.test(version),
      ),
    ).toEqual([]);
  });
});

/** Packages of tests that name the newest Node of their release as their last one, and work with later ones: tests use them with it. */
const ENDS_TOO_EARLY = new Set(['node_modules/cloudevents']);

describe('every package', () => {
  it('that the image holds runs on every Node that package.json allows', async () => {
    const { engines } = await manifest();
    const unfit = (await lockedPackages()).filter(
      ([, { dev, engines: wants }]) => !dev && wants?.node !== undefined && !subset(engines.node, wants.node),
    );
    expect(unfit.map(([place, { engines: wants }]) => [place, wants?.node])).toEqual([]);
  });

  it('that tests and checks need runs on the Node that npm installs', async () => {
    const { devDependencies } = await manifest();
    const unfit = (await lockedPackages()).filter(
      ([place, { dev, engines: wants }]) =>
        dev &&
        !ENDS_TOO_EARLY.has(place) &&
        wants?.node &&
        !satisfies(devDependencies.node ?? '', wants.node),
    );
    expect(unfit.map(([place, { engines: wants }]) => [place, wants?.node])).toEqual([]);
  });

  it('that is optional also runs on the Node of npm', async () => {
    const unfit = (await lockedPackages()).filter(
      ([, { optional, os, engines: wants }]) =>
        optional &&
        (os === undefined || os.includes('linux')) &&
        wants?.node &&
        !satisfies(NODE_OF_NPM, wants.node),
    );
    expect(unfit.map(([place, { engines: wants }]) => [place, wants?.node])).toEqual([]);
  });
});

/** Licences of packages that are part of the image and the package: they ask for no more than their notice. */
const LICENCES = ['0BSD', 'Apache-2.0', 'BlueOak-1.0.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT'];
/** Those that run only on the machines of developers, besides. */
const LICENCES_OF_TOOLS = ['CC0-1.0', 'CC-BY-4.0', 'MIT-0', 'MPL-2.0', 'Python-2.0', 'Unlicense'];

it('the table of what an image holds names every package that package.json asks for', async () => {
  const page = await readFile('docs/operations.md', 'utf8');
  const table = page.slice(page.indexOf('## What an image holds'), page.indexOf('The embedded Postgres'));
  const { dependencies } = await manifest();
  const missing = Object.keys(dependencies).filter(
    (name) => !table.includes(`\`${name}\``) && !name.startsWith('@opentelemetry/'),
  );
  expect(table).toContain('| OpenTelemetry');
  expect(missing).toEqual([]);
});

describe('the licences of the dependencies', () => {
  /** By the lock file, or the package itself; undefined for a tool of another system, which is not installed. */
  async function licenceOf(place: string, { license, dev }: LockedPackage): Promise<string | undefined> {
    if (license !== undefined) return license;
    const own = await readFile(`${place}/package.json`, 'utf8').catch(() => undefined);
    if (own === undefined) return dev ? undefined : 'unknown';
    // Packages of before 2015 have a list.
    const { license: found, licenses } = JSON.parse(own);
    return typeof found === 'string' ? found : String(found?.type ?? licenses?.[0]?.type ?? 'unknown');
  }

  /** One of the alternatives, or all parts of an expression, must be in the list. */
  function isIn(list: readonly string[], expression: string): boolean {
    const bare = expression.replaceAll(/[()]/g, '');
    return bare.split(' OR ').some((choice) => choice.split(' AND ').every((part) => list.includes(part)));
  }

  it('of what is shipped ask for their notice only; those of tools are known as well', async () => {
    const strange: string[] = [];
    for (const [place, locked] of await lockedPackages()) {
      const licence = await licenceOf(place, locked);
      const list = locked.dev ? [...LICENCES, ...LICENCES_OF_TOOLS] : LICENCES;
      if (licence !== undefined && !isIn(list, licence)) strange.push(`${place}: ${licence}`);
    }
    expect(strange).toEqual([]);
  });
});
