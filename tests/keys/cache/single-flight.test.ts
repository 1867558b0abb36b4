import { describe, expect, it } from '@jest/globals';
import { SingleFlight } from '../../../src/keys/cache/single-flight.ts';

describe('shared reads', () => {
  it('make room for others when they have ended, also when they failed', async () => {
    const reads = new SingleFlight<string>(1);
    const read = (name: string, source: () => Promise<string>) =>
      new Promise<Error | string | undefined>((resolve) =>
        reads.join(name, source, (error, value) => resolve(error ?? value)),
      );
    const failure = new Error('the store is down');
    expect(await read('a', async () => 'one')).toBe('one');
    expect(await read('b', () => Promise.reject(failure))).toBe(failure);
    expect(await read('a', async () => 'two')).toBe('two');
  });
});
