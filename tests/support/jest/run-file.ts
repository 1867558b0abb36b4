import { createRequire, registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import { defineTestsBy } from './globals.ts';

/** Jest's `testRunner`: what it takes, and what this passes on. */
type RunFile = (
  globalConfig: unknown,
  config: unknown,
  environment: { getVmContext(): unknown },
  runtime: unknown,
  testPath: string,
  sendMessage: unknown,
) => Promise<unknown>;

/** Where circus keeps the handlers of a file's events in a process. */
const EVENT_HANDLERS = Symbol.for('EVENT_HANDLERS');

const require = createRequire(import.meta.url);
const { default: runWithCircus }: { readonly default: RunFile } = require('jest-circus/runner');

/**
 * Runs a test file as Node runs it: in the one realm of the process, where each module is loaded once for all files. Jest by itself loads and
 * compiles everything again for each file. Files with an environment that has a realm, such as jsdom, are left to it.
 */
export default function runFile(
  ...[globalConfig, config, environment, runtime, ...rest]: Parameters<RunFile>
) {
  const hasRealm = environment.getVmContext() !== null;
  return runWithCircus(globalConfig, config, environment, hasRealm ? runtime : nodeRuntime, ...rest);
}

/** The part of Jest's runtime that circus uses. */
const nodeRuntime = {
  /** A copy of circus for each file, because it keeps the tests of one. */
  requireInternalModule(path: string): unknown {
    Reflect.deleteProperty(globalThis, EVENT_HANDLERS);
    delete require.cache[path];
    return require(path);
  },
  setGlobalsForRuntime: defineTestsBy,
  unstable_shouldLoadAsEsm: () => true,
  unstable_importModule: (path: string) => import(pathToFileURL(path).href),
  requireModule: require,
  enterTestCode() {},
  leaveTestCode() {},
};

const GLOBALS = new URL('./globals.ts', import.meta.url).href;

registerHooks({
  resolve: (specifier, context, next) => next(specifier === '@jest/globals' ? GLOBALS : specifier, context),
});
