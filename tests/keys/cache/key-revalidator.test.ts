import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { pino } from 'pino';
import { StoreUnavailable } from '../../../src/errors.ts';
import { KeyRevalidator } from '../../../src/keys/cache/key-revalidator.ts';
import type { OutdatedKey } from '../../../src/keys/key-repository.ts';
import type { RecordVersion } from '../../../src/limiter/record-versions.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { RecordingVersions } from '../../support/recording-versions.ts';
import { until } from '../../support/until.ts';

describe('checks of cached keys', () => {
  /** Copies that were asked about, a list for each query. */
  let queries: (readonly RecordVersion[])[];
  let respond: (copies: readonly RecordVersion[]) => Promise<readonly OutdatedKey[]>;
  let active: RecordVersion[];
  let held: RecordVersion[];
  let forgotten: string[];
  let versions: RecordingVersions;
  let revalidator: KeyRevalidator;

  beforeEach(() => {
    [queries, active, held, forgotten] = [[], [], [], []];
    respond = async () => [];
    versions = new RecordingVersions();
    revalidator = new KeyRevalidator({
      cache: {
        takeActive: () => active.map((snapshot) => ({ snapshot })),
      },
      repository: {
        findOutdated: (copies) => {
          queries.push(copies.map(({ keyId, version }) => ({ keyId, version })));
          return respond(copies);
        },
      },
      versions,
      clock: systemClock,
      log: pino({ level: 'silent' }),
      held: () => held,
      onOutdated: (keyId) => forgotten.push(keyId),
    });
  });
  afterEach(() => revalidator.stop());

  function copies(count: number): RecordVersion[] {
    return Array.from({ length: count }, (_, index) => ({ keyId: `key_${index}`, version: `${index}.1` }));
  }

  it('compare all that is in use with the record store, a thousand at a time', async () => {
    active = copies(2500);
    held = [{ keyId: 'key_connected', version: '7.1' }];
    revalidator.checkSoon();
    await until(() => revalidator.checked === 2501);
    expect(queries.map(({ length }) => length)).toEqual([1000, 1000, 501]);
    expect(queries.flat()).toEqual([...active, ...held]);
  });

  it('forget what is outdated, withdraw its version, and retire what is gone', async () => {
    active = copies(3);
    respond = async () => [
      { keyId: 'key_0', version: '0.1', isGone: false },
      { keyId: 'key_2', version: '2.1', isGone: true },
    ];
    revalidator.checkSoon();
    await until(() => versions.steps.length === 2);
    expect(forgotten).toEqual(['key_0', 'key_2']);
    expect(versions.steps).toEqual([
      { step: 'withdraw', keys: ['key_0'], versions: ['0.1'] },
      { step: 'retire', keys: ['key_2'] },
    ]);
    expect(revalidator.outdated).toBe(2);
  });

  it('forget what is outdated although the shared versions are down', async () => {
    active = copies(2);
    respond = async (asked) => asked.map((copy) => ({ ...copy, isGone: false }));
    versions.failing = { step: 'withdraw', error: new StoreUnavailable('redis', undefined) };
    revalidator.checkSoon();
    await until(() => forgotten.length === 2);
  });

  it('go on after the record store has failed', async () => {
    jest.useFakeTimers();
    try {
      active = copies(1);
      respond = async () => {
        throw new StoreUnavailable('postgres', undefined);
      };
      revalidator.start();
      await jest.advanceTimersByTimeAsync(10_000);
      const asked = queries.length;
      expect(asked).toBeGreaterThan(0);
      expect(revalidator.checked).toBe(0);
      respond = async () => [];
      await jest.advanceTimersByTimeAsync(10_000);
      expect(queries.length).toBeGreaterThan(asked);
      expect(revalidator.checked).toBeGreaterThan(0);
    } finally {
      jest.useRealTimers();
    }
  });

  it('are made once more when the versions may have been lost while one runs', async () => {
    active = copies(1);
    const first = Promise.withResolvers<readonly OutdatedKey[]>();
    respond = () => first.promise;
    revalidator.checkSoon();
    await until(() => queries.length === 1);
    revalidator.checkSoon();
    expect(queries).toHaveLength(1);
    respond = async () => [];
    first.resolve([]);
    await until(() => queries.length === 2);
  });

  it('are made soon when the versions may be lost, also after one without any key', async () => {
    jest.useFakeTimers();
    try {
      revalidator.checkSoon();
      await jest.advanceTimersByTimeAsync(1);
      active = copies(1);
      revalidator.checkSoon();
      await jest.advanceTimersByTimeAsync(250);
      expect(queries).toHaveLength(1);
    } finally {
      jest.useRealTimers();
    }
  });

  it('are made every three seconds', async () => {
    jest.useFakeTimers();
    try {
      active = copies(1);
      revalidator.start();
      for (const checks of [1, 2, 3]) {
        await jest.advanceTimersByTimeAsync(2999);
        expect(queries).toHaveLength(checks - 1);
        await jest.advanceTimersByTimeAsync(1);
        expect(queries).toHaveLength(checks);
      }
    } finally {
      jest.useRealTimers();
    }
  });

  it('keep no process alive between them', () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    revalidator.start();
    expect(timers()).toBe(before);
  });

  it('end with the query that runs', async () => {
    active = copies(1);
    const first = Promise.withResolvers<readonly OutdatedKey[]>();
    respond = () => first.promise;
    revalidator.checkSoon();
    await until(() => queries.length === 1);
    let isStopped = false;
    const stopping = revalidator.stop().then(() => {
      isStopped = true;
    });
    await new Promise(setImmediate);
    expect(isStopped).toBe(false);
    first.resolve([]);
    await stopping;
    revalidator.checkSoon();
    expect(queries).toHaveLength(1);
  });
});
