import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from '@jest/globals';

const SOURCE = new URL('../../src/', import.meta.url).href;
/** A process whose start does not let Node look for signals, as that of an embedded database. */
const BUSY_START = `
  import { StopSignals } from '${SOURCE}cli/stop-signals.ts';
  import { createLogger } from '${SOURCE}platform/logger.ts';
  const signals = new StopSignals(createLogger('info'));
  signals.endStart();
  setImmediate(() => {
    process.kill(process.pid, process.argv[1]);
    signals.stopGateway({ stop: async () => true });
  });
  // Without the signal it goes on.
  process.stdin.resume();`;

describe('a signal that arrives while the start keeps the process busy', () => {
  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'])('stops the gateway once it runs: %s', async (signal) => {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', BUSY_START, signal], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const output = text(child.stdout);
    // It ends by the end of its input as well, with another code and no line.
    child.stdout.once('data', () => child.stdin.end());
    const [exit] = await Promise.all([once(child, 'exit'), output]);
    expect([exit, await output]).toEqual([[0, null], expect.stringContaining('stopped, usage written')]);
  });
});
