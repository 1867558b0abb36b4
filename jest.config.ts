import type { Config } from 'jest';

/** ESM run as it is: swc only strips the types. Stores are started once, before the first test. Many tests wait more than they compute, so three workers share two cores. */
const config: Config = {
  testEnvironment: 'node',
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
  // What only a browser loads. The name of a class is itself.
  moduleNameMapper: {
    '\\.css$': '<rootDir>/tests/console/components/support/class-names.ts',
    '\\.svg$': '<rootDir>/tests/console/components/support/picture-url.ts',
  },
  setupFiles: ['<rootDir>/tests/support/recognize-errors.ts'],
  testMatch: ['<rootDir>/tests/**/*.test.{ts,tsx}'],
  globalSetup: '<rootDir>/tests/support/global-setup.ts',
  globalTeardown: '<rootDir>/tests/support/global-teardown.ts',
  // Beside the modules: a run has its own folder for temporary files.
  cacheDirectory: '<rootDir>/node_modules/.cache/jest',
  testTimeout: 180_000,
  maxWorkers: 3,
};

export default config;
