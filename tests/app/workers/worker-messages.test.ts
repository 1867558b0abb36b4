import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from '@jest/globals';

const MESSAGES = new URL('../../../src/app/workers/worker-messages.ts', import.meta.url).href;
/** Waits for its standard input without noticing anything else, and then reports. */
const WORKER = `
  import { readSync } from 'node:fs';
  import { sendToPrimary } from ${JSON.stringify(MESSAGES)};
  process.once('disconnect', () => process.stdout.write('stops'));
  process.once('message', () => {
    process.stdout.write('waits ');
    readSync(0, Buffer.alloc(1));
    sendToPrimary({ type: 'files-request' });
  });`;

describe('a worker that sends a message', () => {
  it('stops in order where its primary process has just gone', async () => {
    const worker = spawn(process.execPath, ['--input-type=module', '--eval', WORKER], {
      stdio: ['pipe', 'pipe', 'inherit', 'ipc'],
    });
    const { stdin, stdout } = worker;
    if (stdin === null || stdout === null) throw new Error('no pipes');
    const ended = Promise.all([once(worker, 'exit'), once(stdout, 'end')]);
    let output = '';
    stdout.on('data', (bytes) => {
      output += bytes;
      if (output !== 'waits ') return;
      worker.disconnect();
      worker.once('disconnect', () => stdin.end('.'));
    });
    worker.send('wait');
    const [exit] = await ended;
    expect(exit).toEqual([0, null]);
    expect(output).toBe('waits stops');
  });
});
