import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { pino } from 'pino';
import { RecordsPreparation } from '../../src/app/stores/records-preparation.ts';
import { StoreUnavailable } from '../../src/errors.ts';
import type { PlanRepository } from '../../src/plans/plan-repository.ts';

let warnings: string[];
let conflicts: readonly string[];
let preparation: RecordsPreparation;
let isPrepared: boolean;
let hasKnownEnd: boolean;
let errors: unknown[];
let lines: unknown[];
let pendingMigrations: () => Promise<readonly string[]>;
let oldestAndNewest: () => Promise<readonly unknown[]>;

beforeEach(() => {
  jest.useFakeTimers();
  warnings = [];
  errors = [];
  lines = [];
  pendingMigrations = async () => [];
  conflicts = ['plan gold: not managed'];
  isPrepared = false;
  hasKnownEnd = true;
  const sealed = (digest: string) => ({
    keyId: digest,
    secretVersion: 1,
    sealedSecret: Buffer.from(digest),
    sealedDigest: null,
  });
  oldestAndNewest = async () => [sealed('known'), sealed('of another key')];
  const plans: Pick<PlanRepository, 'find'> = { find: async () => undefined };
  const records = {
    migrate: async () => [],
    pendingMigrations: () => pendingMigrations(),
    ping: async () => {},
    plans,
    sealedKeys: { oldestAndNewest: () => oldestAndNewest() },
    audit: { hasKnownEnd: async () => hasKnownEnd },
    sealedTokens: { after: async () => [] },
  };
  const write = (line: string): void => {
    const { level, msg, err } = JSON.parse(line) as { level: number; msg: string; err?: { message: string } };
    lines.push(JSON.parse(line));
    if (level === 40) warnings.push(msg);
    if (level === 50) errors.push(err?.message ?? msg);
  };
  preparation = new RecordsPreparation({
    // What the preparation reads of the store is all that there is of it here.
    records: records as unknown as ConstructorParameters<typeof RecordsPreparation>[0]['records'],
    settings: { autoMigrate: false, defaultPlanId: 'gone' },
    vault: { knows: (text: Buffer) => text.toString() === 'known' } as unknown as ConstructorParameters<
      typeof RecordsPreparation
    >[0]['vault'],
    log: pino({}, { write }),
  });
});
afterEach(async () => {
  await preparation.stop();
  jest.useRealTimers();
});

describe('the preparation of the records', () => {
  it('logs each warning once, however often a configuration is tried again', async () => {
    const prepared = () => {
      isPrepared = true;
    };
    preparation.start({ configure: async () => conflicts, prepared });
    await jest.advanceTimersByTimeAsync(60_000);
    await expect(preparation.check()).rejects.toThrow(
      'CONFIG_FILE can not be applied: plan gold: not managed',
    );
    expect(isPrepared).toBe(false);
    conflicts = [];
    await jest.advanceTimersByTimeAsync(5000);
    expect(isPrepared).toBe(true);
    expect(warnings).toEqual([
      'ENCRYPTION_KEY does not open some of the stored keys: add the one that they were made under',
      'DEFAULT_PLAN_ID names no plan: keys without a plan of their own get 503 until it is made',
    ]);
  });

  it('names the fault of its last attempt, and logs each that differs from the one before', async () => {
    const isRefused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    const lacksRight = Object.assign(new Error('permission denied for schema public'), { code: '42501' });
    let fault: Error = isRefused;
    pendingMigrations = async () => {
      throw fault;
    };
    preparation.start({ configure: undefined, prepared: () => {} });
    await jest.advanceTimersByTimeAsync(3000);
    // It responds again, and the next attempt has not begun.
    await expect(preparation.check()).rejects.toThrow('migrations are being applied');
    fault = lacksRight;
    await jest.advanceTimersByTimeAsync(3000);
    await expect(preparation.check()).rejects.toMatchObject({
      message: 'the records could not be prepared, see the log: permission denied for schema public',
      level: 'error',
    });
    expect(errors).toEqual([isRefused.message, lacksRight.message]);
    fault = new Error('relation "plans" exists');
    await jest.advanceTimersByTimeAsync(1000);
    expect(errors).toHaveLength(3);
  });

  it.each([
    ['pending migrations', () => ['0001_tables'], () => []],
    ['a conflict of CONFIG_FILE', () => [], () => conflicts],
  ])('names the fault of its last attempt after %s as well', async (_what, pending, conflicting) => {
    pendingMigrations = async () => pending();
    preparation.start({ configure: async () => conflicting(), prepared: () => {} });
    await jest.advanceTimersByTimeAsync(0);
    await expect(preparation.check()).rejects.not.toThrow('could not be prepared');
    pendingMigrations = async () => [];
    oldestAndNewest = async () => {
      throw Object.assign(new Error('permission denied for table consumer_keys'), { code: '42501' });
    };
    await jest.advanceTimersByTimeAsync(5000);
    await expect(preparation.check()).rejects.toThrow(
      'the records could not be prepared, see the log: permission denied for table consumer_keys',
    );
  });

  it.each([
    ['25006', 'cannot execute INSERT in a read-only transaction'],
    ['53100', 'could not extend file: No space left on device'],
  ])('names a store that responds but takes no writes: %s', async (code, sentence) => {
    const configure = async () => {
      throw new StoreUnavailable('postgres', Object.assign(new Error(sentence), { code }));
    };
    preparation.start({ configure, prepared: () => {} });
    await jest.advanceTimersByTimeAsync(3000);
    await expect(preparation.check()).rejects.toMatchObject({
      message: `the records could not be prepared, see the log: ${sentence}`,
      level: 'error',
    });
  });

  it('applies the configuration once ENCRYPTION_KEY suits what is stored', async () => {
    hasKnownEnd = false;
    const configure = async () => {
      // As every change.
      preparation.requireOpenKeys();
      return [];
    };
    const prepared = () => {
      isPrepared = true;
    };
    preparation.start({ configure, prepared });
    await jest.advanceTimersByTimeAsync(3000);
    await expect(preparation.check()).rejects.toThrow('ENCRYPTION_KEY does not open the stored keys');
    hasKnownEnd = true;
    await jest.advanceTimersByTimeAsync(1000);
    expect(isPrepared).toBe(true);
  });

  it('logs the first thousand of many conflicts, and their number', async () => {
    conflicts = Array.from({ length: 40_000 }, (_, number) => `plan gold-${number}: not managed`);
    preparation.start({ configure: async () => conflicts, prepared: () => {} });
    await jest.advanceTimersByTimeAsync(0);
    expect(errors).toEqual(['CONFIG_FILE can not be applied to what there is; it is tried again']);
    expect(lines.at(-1)).toMatchObject({ conflicts: conflicts.slice(0, 1000), count: 40_000 });
  });
});
