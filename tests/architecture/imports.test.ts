import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const root = resolve(import.meta.dirname, '../..');
const source = join(root, 'src');
const document = readFileSync(join(root, 'docs/architecture.md'), 'utf8');

const entries = [
  'main.ts',
  'cli/tollgate.ts',
  'cli/serve.ts',
  'cli/migrate.ts',
  'cli/rotate-encryption-key.ts',
  'cli/sample-backend.ts',
];
/** Which folders of src a folder may import from, besides itself, as docs/architecture.md says. */
const mayImport = new Map(
  [...document.matchAll(/^\| `([\w.-]+?)\/?` \|.*\| ([^|]+) \|$/gm)].map(([, folder = '', names = '']) => [
    folder,
    names
      .replaceAll(/ \([^)]*\)/g, '')
      .split(', ')
      .map((name) => (name === 'errors' ? 'errors.ts' : name)),
  ]),
);
/** Where a package may be imported; a package that is not listed may be used anywhere. */
const packageFolders: Readonly<Record<string, readonly string[]>> = {
  express: ['http', 'management'],
  'http-proxy-middleware': ['proxy'],
  undici: ['backend'],
  'openapi-fetch': ['client'],
  react: ['console'],
  'react-dom': ['console'],
  '@base-ui/react': ['console'],
  '@tanstack/react-query': ['console'],
  '@tanstack/react-table': ['console'],
  '@tanstack/react-virtual': ['console'],
  echarts: ['console'],
  'lucide-react': ['console'],
  wouter: ['console'],
  preact: ['portal'],
  saxes: ['management'],
  commander: ['cli'],
  'csv-parse': ['cli'],
  '@bomb.sh/tab': ['cli'],
  'fast-string-truncated-width': ['cli'],
  ioredis: ['storage'],
  pg: ['storage'],
  'pg-connection-string': ['storage', 'settings'],
  kysely: ['storage'],
  '@electric-sql/pglite': ['storage'],
  ajv: ['http', 'management'],
  pino: ['platform'],
  'prom-client': ['observability'],
  'openid-client': ['sign-in'],
  jose: ['sign-in'],
  '@opentelemetry/api': ['observability'],
  '@opentelemetry/sdk-trace': ['observability'],
};

interface Import {
  readonly file: string;
  readonly specifier: string;
  /** Absolute path of an imported file of ours. */
  readonly target: string | undefined;
}

const files = globSync('**/*.{ts,tsx}', { cwd: source }).toSorted();
const imports: readonly Import[] = files.flatMap((file) => importsOf(file));

function importsOf(file: string): readonly Import[] {
  const text = readFileSync(join(source, file), 'utf8');
  const found = text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g);
  return [...found].map(([, specifier = '']) => ({
    file,
    specifier,
    target: specifier.startsWith('.')
      ? relative(source, resolve(source, dirname(file), specifier))
      : undefined,
  }));
}

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

function folderOf(file: string): string {
  return file.split('/')[0] ?? file;
}

/** In place of folders. */
const GENERAL: ReadonlySet<string> = new Set(['all', 'nothing']);

function isAllowed(from: string, to: string): boolean {
  const names = mayImport.get(from) ?? [];
  return names.includes('all') || names.includes(to);
}

describe('the folders of src', () => {
  it('are all known', () => {
    const folders = new Set(files.map(folderOf));
    expect([...folders].filter((folder) => !mayImport.has(folder))).toEqual([]);
  });

  it('import only from the folders that they may import', () => {
    const violations = imports.filter(({ file, target }) => {
      if (target === undefined) return false;
      const [from, to] = [folderOf(file), folderOf(target)];
      return from !== to && !isAllowed(from, to);
    });
    expect(violations.map(({ file, specifier }) => `${file} imports ${specifier}`)).toEqual([]);
  });

  it('may import only from folders that they do import from', () => {
    const used = new Set(
      imports.flatMap(({ file, target }) =>
        target === undefined ? [] : `${folderOf(file)} ${folderOf(target)}`,
      ),
    );
    const unused = [...mayImport].flatMap(([from, names]) =>
      names.filter((to) => !GENERAL.has(to) && !used.has(`${from} ${to}`)).map((to) => `${from} ${to}`),
    );
    expect(unused).toEqual([]);
  });

  it('keep each library in the folders that own it', () => {
    const violations = imports.filter(({ file, specifier }) => {
      const folders = packageFolders[packageOf(specifier)];
      return folders !== undefined && !folders.includes(folderOf(file));
    });
    expect(violations.map(({ file, specifier }) => `${file} imports ${specifier}`)).toEqual([]);
  });

  it('have no import cycles', () => {
    const graph = new Map(
      files.map((file) => [
        file,
        imports.filter((edge) => edge.file === file).flatMap(({ target }) => target ?? []),
      ]),
    );
    expect(cycleIn(graph)).toEqual([]);
  });

  it('stand on nine floors at the most, each above all that it imports from', () => {
    const floors = new Map<string, number>();
    const floorOf = (folder: string): number => {
      const known = floors.get(folder);
      if (known !== undefined) return known;
      const below = imports
        .filter(({ file, target }) => folderOf(file) === folder && target !== undefined)
        .map(({ target = '' }) => folderOf(target))
        .filter((other) => other !== folder);
      const floor = 1 + Math.max(0, ...[...new Set(below)].map(floorOf));
      floors.set(folder, floor);
      return floor;
    };
    expect(floorOf('main.ts')).toBeLessThanOrEqual(9);
  });

  it('load no code for other gateways at a start without AUTHORIZE_PORT', () => {
    const entries = ['main.ts', 'cli/serve.ts', 'app/single-process.ts', 'app/workers/worker.ts'];
    const loaded = new Set(entries.flatMap((entry) => [...loadedFrom(entry)]));
    const port = 'app/wiring/wire-authorize.ts';
    const isOfPort = (file: string): boolean => file === port || folderOf(file) === 'authorize';
    expect([loaded.has('app/replica.ts'), [...loadedFrom(port)].some(isOfPort)]).toEqual([true, true]);
    expect([...loaded].filter(isOfPort)).toEqual([]);
    // What is imported later is imported in one place, after the setting was read.
    const replica = readFileSync(join(source, 'app/replica.ts'), 'utf8');
    expect(replica).toMatch(/authorizePort === null\) return undefined;\n.* = await import\(.*authorize/);
    const outside = files.filter((file) => !isOfPort(file) && file !== 'app/replica.ts');
    const later = outside.filter((file) =>
      /import\('[^']*authorize/.test(readFileSync(join(source, file), 'utf8')),
    );
    expect(later).toEqual([]);
  });

  it('load no code for sign-in at a start without OIDC_ISSUER', () => {
    const entries = ['main.ts', 'cli/serve.ts', 'app/single-process.ts', 'app/workers/worker.ts'];
    const loaded = new Set(entries.flatMap((entry) => [...loadedFrom(entry)]));
    const uses = (file: string): boolean =>
      /^import (?!type\b).* from '(?:openid-client|jose)'/m.test(readFileSync(join(source, file), 'utf8'));
    expect([...loadedFrom('app/wiring/wire-sign-in.ts')].some(uses)).toBe(true);
    expect([loaded.has('app/replica.ts'), [...loaded].filter(uses)]).toEqual([true, []]);
    const replica = readFileSync(join(source, 'app/replica.ts'), 'utf8');
    expect(replica).toMatch(/oidcIssuer === null\) return undefined;\n.* = await import\(.*sign-in/);
    const later = files.filter((file) =>
      /import\('[^']*sign-in/.test(readFileSync(join(source, file), 'utf8')),
    );
    expect(later.filter((file) => !file.startsWith('cli/') && !file.startsWith('console/'))).toEqual([
      'app/replica.ts',
    ]);
  });

  it('load no code of the portal at a start without PORTAL', () => {
    const entries = ['main.ts', 'cli/serve.ts', 'app/single-process.ts', 'app/workers/worker.ts'];
    const loaded = new Set(entries.flatMap((entry) => [...loadedFrom(entry)]));
    const ofPortal = /^(?:app\/wiring\/wire-portal\.ts|management\/portal\/)/;
    expect(loaded.has('app/replica.ts')).toBe(true);
    expect([...loaded].filter((file) => ofPortal.test(file))).toEqual([]);
    const replica = readFileSync(join(source, 'app/replica.ts'), 'utf8');
    expect(replica).toMatch(/portal === 'off'\) return undefined;\n.* = await import\(.*portal/);
  });

  it('read the environment only in the entries', () => {
    const readers = files.filter((file) => readFileSync(join(source, file), 'utf8').includes('process.env'));
    // Programs for consumers to copy.
    const examples = 'portal/portal/examples.tsx';
    expect(readers.filter((file) => !entries.includes(file) && file !== examples)).toEqual([]);
  });

  it('take time and randomness from the platform', () => {
    const system =
      /\bDate\.now\(|\bnew Date\(\)|\bMath\.random\(|\bperformance\.now\(|\brandomBytes\(|\brandomUUID\(/;
    const takers = files.filter(
      (file) =>
        folderOf(file) !== 'platform' &&
        // The browser's: the console imports nothing of the gateway.
        file !== 'console/format/now.ts' &&
        system.test(readFileSync(join(source, file), 'utf8')),
    );
    expect(takers).toEqual([]);
  });
});

/** The files that are loaded with a file: by imports that are neither of types only nor made later. */
function loadedFrom(entry: string): Set<string> {
  const loaded = new Set<string>();
  const visit = (file: string): void => {
    if (loaded.has(file)) return;
    loaded.add(file);
    const text = readFileSync(join(source, file), 'utf8');
    for (const [, from = ''] of text.matchAll(/^(?:import|export)(?! type\b)[^;']*from '(\.[^']+)'/gm))
      visit(relative(source, resolve(source, dirname(file), from)));
  };
  visit(entry);
  return loaded;
}

/** The files of one cycle, or none. */
function cycleIn(graph: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (file: string): readonly string[] => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return [];
    path.push(file);
    for (const next of graph.get(file) ?? []) {
      const cycle = visit(next);
      if (cycle.length > 0) return cycle;
    }
    path.pop();
    done.add(file);
    return [];
  };
  for (const file of graph.keys()) {
    const cycle = visit(file);
    if (cycle.length > 0) return cycle;
  }
  return [];
}
