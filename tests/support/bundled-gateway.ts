import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Plugin } from 'vite';
import { type MadeFromSource, makeWhereOutdated, pathOfMade } from './made-from-source.ts';

const ROOT = resolve(import.meta.dirname, '../..');

const BUNDLE: MadeFromSource = {
  name: 'tollgate-tests',
  makers: [import.meta.filename],
  make: bundle,
};

/** `src/main.ts` with all that it imports, in a few files: once `bundleGateway` has resolved. */
export const BUNDLED_MAIN = join(pathOfMade(BUNDLE.name), 'main.js');

/**
 * Puts the gateway and its packages into a few files in place of 1300, from which it starts in less than half of the CPU time. They are made
 * again where the source, the packages or this file have changed. Tests of `npm start`, of `--check` and of what a start loads run the source.
 */
export async function bundleGateway(): Promise<void> {
  await makeWhereOutdated(BUNDLE);
}

async function bundle(folder: string): Promise<void> {
  // Loaded only here: most runs find the files.
  const { build } = await import('vite');
  await build({
    configFile: false,
    root: ROOT,
    publicDir: false,
    logLevel: 'error',
    plugins: [atPlaceOfSource, withoutCollection],
    ssr: { noExternal: true, external: ['@electric-sql/pglite'] },
    build: {
      ssr: join(ROOT, 'src/main.ts'),
      outDir: folder,
      target: 'esnext',
      minify: false,
    },
  });
}

/** A module knows the files beside it by its own place, which stays that of its source. */
const atPlaceOfSource: Plugin = {
  name: 'at-place-of-source',
  transform(code, path) {
    if (!path.startsWith(join(ROOT, 'src')) || !code.includes('import.meta')) return;
    return code
      .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
      .replaceAll('import.meta.dirname', JSON.stringify(dirname(path)));
  },
};

/** The collection before a gateway listens saves memory, of which a test has enough, and takes a tenth of the CPU time of its start. */
const withoutCollection: Plugin = {
  name: 'without-collection',
  load(path) {
    if (path !== join(ROOT, 'src/platform/process/collect-garbage.ts')) return;
    return 'export async function collectGarbage() {}';
  },
};
