import { ModuleMocker } from 'jest-mock';
import { jest } from './globals.ts';

/**
 * The environment of a test file that Node runs as it is: see `run-file.ts`. What Jest changes in the globals of a file reaches only a view of
 * them. What a file changed in its process is undone, because the next file runs in the same one.
 */
export default class NodeEnvironment {
  readonly global = Object.create(globalThis, { process: { value: Object.create(process) } });
  readonly moduleMocker = new ModuleMocker(globalThis);
  readonly fakeTimers = null;
  readonly fakeTimersModern = null;
  readonly #variables = { ...process.env };
  readonly #directory = process.cwd();
  readonly #exit = process.exit;
  readonly #formatStack = Error.prepareStackTrace;

  async setup(): Promise<void> {
    // It would end the run or the worker, with the status of the code under test.
    process.exit = (code) => {
      throw new Error(`process.exit(${code ?? ''}) was called in the process of the tests`);
    };
    // Jest's looks for source maps, of which there are none, and takes 20 times as long.
    Object.assign(Error, { prepareStackTrace: undefined, stackTraceLimit: 20 });
  }

  async teardown(): Promise<void> {
    jest.useRealTimers();
    jest.restoreAllMocks();
    for (const name of Object.keys(process.env)) if (!(name in this.#variables)) delete process.env[name];
    Object.assign(process.env, this.#variables);
    process.chdir(this.#directory);
    process.exit = this.#exit;
    Object.assign(Error, { prepareStackTrace: this.#formatStack });
    process.exitCode = undefined;
  }

  /** Jest asks this to tell an environment from another thing. */
  getVmContext(): null {
    return null;
  }

  exportConditions(): string[] {
    return ['node', 'node-addons'];
  }
}
