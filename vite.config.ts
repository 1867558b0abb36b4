import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { defineConfig, type Plugin, type UserConfig } from 'vite';

/** The gateway that the development server passes requests of the management interface to. */
const gateway = process.env.TOLLGATE_URL ?? 'http://127.0.0.1:8080';

/** Writes a `.br` and a `.gz` beside each file, so that the gateway never compresses. */
function precompress(): Plugin {
  return {
    name: 'precompress',
    apply: 'build',
    writeBundle({ dir = '' }, bundle) {
      for (const name of Object.keys(bundle)) {
        const path = join(dir, name);
        const content = readFileSync(path);
        const params = {
          [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
          [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
        };
        writeFileSync(`${path}.br`, brotliCompressSync(content, { params }));
        writeFileSync(`${path}.gz`, gzipSync(content, { level: constants.Z_BEST_COMPRESSION }));
      }
    },
  };
}

/** Puts a finished build in place of the one before: a gateway that runs meanwhile never sees half of one. */
function putInPlace(served: string): Plugin {
  const outdated = `${served}.old`;
  return {
    name: 'put-in-place',
    apply: 'build',
    closeBundle(error) {
      if (error !== undefined) return;
      rmSync(outdated, { recursive: true, force: true });
      if (existsSync(served)) renameSync(served, outdated);
      renameSync(`${served}.new`, served);
      rmSync(outdated, { recursive: true, force: true });
    },
  };
}

/** Pages that the gateway serves from `dist/<name>`, with files of hashed names. */
function pages(name: string): UserConfig {
  const served = join(import.meta.dirname, 'dist', name);
  return {
    root: join(import.meta.dirname, 'src', name),
    plugins: [precompress(), putInPlace(served)],
    build: {
      outDir: `${served}.new`,
      emptyOutDir: true,
      target: ['chrome123', 'firefox121', 'safari17.5'],
      // An inlined asset would be a `data:` URL, which the content security policy does not allow.
      assetsInlineLimit: 0,
      // The notices that the licences of the bundled libraries ask for.
      license: { fileName: 'licenses.md' },
      modulePreload: { polyfill: false },
      // ECharts, which is loaded with the first chart of the console.
      chunkSizeWarningLimit: 700,
      rolldownOptions: {
        // `use client` in libraries means nothing outside of a server's framework.
        onwarn: (warning, warn) => {
          if (warning.code !== 'MODULE_LEVEL_DIRECTIVE') warn(warning);
        },
      },
    },
  };
}

const consoleConfig: UserConfig = {
  ...pages('console'),
  base: '/tollgate/console/',
  server: {
    proxy: {
      '^/(consumer-api-key|rate-limit|api-keys)(/|\\?|$)': gateway,
      '^/tollgate/(?!console)': gateway,
    },
  },
};

/** The pages for consumers, whose paths are settings of the gateway: all of their files are relative to the page. */
function portalConfig(): UserConfig {
  const config = pages('portal');
  const input = ['handover.html', 'portal.html'].map((file) => join(import.meta.dirname, 'src/portal', file));
  return {
    ...config,
    base: './',
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: { ...config.build, rolldownOptions: { ...config.build?.rolldownOptions, input } },
  };
}

/** The console; with `--mode portal` the pages for consumers. */
export default defineConfig(({ mode }) => (mode === 'portal' ? portalConfig() : consoleConfig));
