import { writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { resolve } from 'node:path';
import * as circus from 'jest-circus';
import { defineTestsBy } from '../support/jest/globals.ts';

// Runs test files one after the other, up to the first test that fails: `node run-tests.ts <outcome> <bound of a test in ms> <file>...`. Node runs
// them as they are, with the engine of Jest alone: Jest itself takes many times as long until the first test, and these are thousands of runs.

/** What a run of the tests writes when it ends. */
export interface Outcome {
  /** The test that failed first, and its file. */
  readonly failed?: { readonly file: string; readonly test: string; readonly message: string };
  /** Of each file that passed. */
  readonly durationsMs: Readonly<Record<string, number>>;
}

const [outcomeFile = '', testMs, ...files] = process.argv.slice(2);
const durationsMs: Record<string, number> = {};
let current = '';

defineTestsBy(circus);
registerHooks({
  resolve: (specifier, context, next) =>
    next(
      specifier === '@jest/globals' ? new URL('../support/jest/globals.ts', import.meta.url).href : specifier,
      context,
    ),
});
for (const file of files) {
  current = file;
  const startedAt = performance.now();
  circus.resetState();
  Object.assign(globalThis, { [Symbol.for('TEST_TIMEOUT_SYMBOL')]: Number(testMs) });
  circus.addEventHandler((event) => {
    if (event.name === 'test_done' && event.test.errors.length > 0)
      fail(event.test.name, event.test.errors[0]);
  });
  try {
    await import(resolve(file));
    const { unhandledErrors, testResults } = await circus.run();
    if (unhandledErrors.length > 0) fail('the file', unhandledErrors[0]);
    if (testResults.length === 0) fail('the file', 'It has no test.');
  } catch (error) {
    fail('the file', error);
  }
  durationsMs[file] = performance.now() - startedAt;
}
end({ durationsMs });

function fail(test: string, reason: unknown): void {
  const first = Array.isArray(reason) ? (reason[0] ?? reason[1]) : reason;
  const message = first instanceof Error ? first.message : String(first);
  end({ failed: { file: current, test, message }, durationsMs });
}

function end(outcome: Outcome): void {
  writeFileSync(outcomeFile, JSON.stringify(outcome));
  process.exit();
}
