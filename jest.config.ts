import type { Config } from 'jest';

/**
 * Node runs the test files as they are, see `run-file.ts`; Jest compiles only those of the console's components, which have a browser's
 * environment. Stores are started once, before the first test. Many tests wait more than they compute, so five workers share two cores.
 */
const config: Config = {
  testEnvironment: '<rootDir>/tests/support/jest/node-environment.ts',
  testRunner: '<rootDir>/tests/support/jest/run-file.ts',
  injectGlobals: false,
  transformIgnorePatterns: ['/node_modules/', '<rootDir>/tests/support/jest/'],
  extensionsToTreatAsEsm: ['.ts', '.tsx'],
  transform: {
    '^.+\\.tsx?$': [
      '@swc/jest',
      {
        jsc: {
          parser: { syntax: 'typescript', tsx: true },
          transform: { react: { runtime: 'automatic' } },
          target: 'es2024',
        },
        module: { type: 'es6' },
      },
    ],
  },
  // What only a browser loads, where the name of a class is itself; and the icons in one file, not in 2000.
  moduleNameMapper: {
    '^lucide-react$': '<rootDir>/node_modules/lucide-react/dist/cjs/lucide-react.js',
    '\\.css$': '<rootDir>/tests/console/components/support/class-names.ts',
    '\\.svg$': '<rootDir>/tests/console/components/support/picture-url.ts',
  },
  testMatch: ['<rootDir>/tests/**/*.test.{ts,tsx}'],
  globalSetup: '<rootDir>/tests/support/global-setup.ts',
  globalTeardown: '<rootDir>/tests/support/global-teardown.ts',
  // Beside the modules: a run has its own folder for temporary files.
  cacheDirectory: '<rootDir>/node_modules/.cache/jest',
  // Some tests take half a minute of CPU, and another run of the suite may be beside this one.
  testTimeout: 600_000,
  maxWorkers: 5,
  // A worker that has loaded a thousand modules writes Node's cache of their code as it ends: on a slow machine, five at a time take more than 5 s.
  workerGracefulExitTimeout: 30_000,
};

export default config;
