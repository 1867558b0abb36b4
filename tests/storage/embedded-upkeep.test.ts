import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { EmbeddedUpkeep } from '../../src/storage/embedded/embedded-upkeep.ts';

const MIB = 2 ** 20;
const QUERIES_A_LOOK = 100;
const VACUUMS = ['VACUUM one', 'VACUUM two', 'VACUUM three'];

describe('the upkeep of an embedded database', () => {
  let upkeep: EmbeddedUpkeep;
  /** Bytes of the write-ahead log. */
  let written: number;
  let looks: number;
  /** What was done, in its order. */
  let done: string[];
  let failures: unknown[];
  /** Takes the place of each statement that does something. */
  let perform: (statement: string) => Promise<void>;

  beforeEach(() => {
    written = 0;
    looks = 0;
    done = [];
    failures = [];
    perform = async () => {};
    const query = async (statement: string): Promise<{ readonly rows: readonly object[] }> => {
      if (statement.includes('pg_current_wal_lsn')) {
        looks += 1;
        return { rows: [{ bytes: written }] };
      }
      if (statement.includes('pg_class')) return { rows: VACUUMS.map((vacuum) => ({ vacuum })) };
      done.push(statement);
      await perform(statement);
      return { rows: [] };
    };
    const pglite = { query } as unknown as ConstructorParameters<typeof EmbeddedUpkeep>[0];
    upkeep = new EmbeddedUpkeep(pglite, (error) => void failures.push(error));
  });

  /** Notes queries, and lets what they make due go on as far as it can. */
  async function note(queries: number): Promise<void> {
    for (let query = 0; query < queries; query += 1) upkeep.noteQuery();
    for (let turn = 0; turn < 2 * VACUUMS.length; turn += 1) await nextTurn();
  }

  /** Looks when this much has been written. */
  async function look(mebibytes: number): Promise<void> {
    written = mebibytes * MIB;
    await note(QUERIES_A_LOOK);
  }

  it('looks at what was written once in a hundred queries', async () => {
    for (const expected of [1, 2]) {
      await note(QUERIES_A_LOOK - 1);
      expect(looks).toBe(expected - 1);
      await note(1);
      expect(looks).toBe(expected);
    }
  });

  it('makes a checkpoint after each 64 MiB, and vacuums after each 256 MiB, and nothing else', async () => {
    const doneAfter: Record<number, readonly string[]> = {};
    for (const mebibytes of [100, 127, 128, 191, 200, 256, 257]) {
      done = [];
      await look(mebibytes);
      doneAfter[mebibytes] = done;
    }
    expect(doneAfter).toEqual({
      ...{ 100: [], 127: [], 128: ['CHECKPOINT'], 191: [], 200: ['CHECKPOINT'] },
      ...{ 256: ['CHECKPOINT', ...VACUUMS], 257: [] },
    });
  });

  it('begins nothing while something is under way', async () => {
    await look(0);
    const checkpoint = Promise.withResolvers<void>();
    perform = () => checkpoint.promise;
    await look(64);
    await look(128);
    expect([looks, done]).toEqual([2, ['CHECKPOINT']]);
    checkpoint.resolve();
    await note(0);
    // The queries noted meanwhile count.
    await note(1);
    expect([looks, done]).toEqual([3, ['CHECKPOINT', 'CHECKPOINT']]);
  });

  it('reports a failure, and tries a checkpoint again with the next look', async () => {
    await look(0);
    const failure = new Error('no space');
    perform = () => Promise.reject(failure);
    await look(64);
    perform = async () => {};
    await look(64);
    expect([failures, done]).toEqual([[failure], ['CHECKPOINT', 'CHECKPOINT']]);
  });

  it('lets other code of the process run before each vacuum', async () => {
    await look(0);
    const turns: number[] = [];
    let turn = 0;
    perform = async () => void turns.push(turn);
    written = 256 * MIB;
    for (let query = 0; query < QUERIES_A_LOOK; query += 1) upkeep.noteQuery();
    for (; turn < 2 * VACUUMS.length; turn += 1) await nextTurn();
    const [checkpoint, ...vacuums] = turns;
    expect(new Set([checkpoint, ...vacuums]).size).toBe(1 + VACUUMS.length);
  });

  it('ends with the statement that is under way when it is stopped, and begins no other', async () => {
    await look(0);
    const vacuum = Promise.withResolvers<void>();
    perform = (statement) => (statement === VACUUMS[0] ? vacuum.promise : Promise.resolve());
    await look(256);
    let isStopped = false;
    const stopped = upkeep.stop().then(() => {
      isStopped = true;
    });
    await note(0);
    expect(isStopped).toBe(false);
    vacuum.resolve();
    await stopped;
    await look(512);
    expect([looks, done]).toEqual([2, ['CHECKPOINT', VACUUMS[0]]]);
  });
});
