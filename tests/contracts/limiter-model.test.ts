import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { windowEndMs } from '../../src/limiter/period.ts';
import type { Decision } from '../../src/limiter/rate-limiter.ts';
import {
  decide,
  LIMITER_STORES,
  type LimiterStore,
  newKeyId,
  quota,
  subject,
} from '../support/limiter-stores.ts';

/** Long periods only: windows end when a step says so, never by themselves in the middle of a run. */
const PERIODS = ['hour', '60 minutes', 'day', 'month', 'P1M', 'year'] as const;

type Step =
  | {
      readonly kind: 'decide';
      readonly version: string;
      readonly fresh: boolean;
      readonly limit: number | null;
      readonly period: (typeof PERIODS)[number];
      readonly replica: number;
    }
  | { readonly kind: 'peek'; readonly period: (typeof PERIODS)[number] }
  | { readonly kind: 'settle'; readonly version: string }
  | { readonly kind: 'announce' | 'retire' | 'endWindow' | 'lapseVersion' };

/** What the ports promise about one key, as simply as it can be said. */
class ModelKey {
  shared: 'nothing' | 'changing' | 'overlapping' | 'deleted' | { readonly version: string } = 'nothing';
  window: { readonly token: string; readonly resetAtMs: number; used: number } | undefined;

  isStale(version: string, fresh: boolean): boolean {
    if (fresh) {
      if (this.shared === 'nothing') this.shared = { version };
      return false;
    }
    return typeof this.shared === 'string' || this.shared.version !== version;
  }

  settle(version: string): void {
    if (this.shared === 'deleted') return;
    if (typeof this.shared === 'object' && this.shared.version === version) return;
    const isOurs = this.shared === 'changing' || this.shared === 'nothing';
    this.shared = isOurs ? { version } : 'overlapping';
  }

  announce(): void {
    if (this.shared === 'deleted') return;
    this.shared = this.shared === 'changing' || this.shared === 'overlapping' ? 'overlapping' : 'changing';
  }
}

const anyVersion = fc.constantFrom('1.0', '1.1', '2.1');
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('decide' as const),
      version: anyVersion,
      fresh: fc.boolean(),
      limit: fc.option(fc.integer({ min: 1, max: 4 }), { freq: 8 }),
      period: fc.constantFrom(...PERIODS),
      replica: fc.nat(10),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('peek' as const), period: fc.constantFrom(...PERIODS) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('settle' as const), version: anyVersion }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom('announce', 'retire', 'endWindow', 'lapseVersion') }),
  },
);

describe.each(Object.entries(LIMITER_STORES))('a limiter %s', (_name, open) => {
  let store: LimiterStore;
  beforeAll(async () => {
    store = await open();
  });
  afterAll(() => store.close());

  it('does what the model does, whatever happens to a key', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { minLength: 1, maxLength: 40 }), async (steps) => {
        const keyId = newKeyId();
        const model = new ModelKey();
        for (const step of steps) await run(step, keyId, model);
      }),
      { numRuns: 150 },
    );
  });

  async function run(step: Step, keyId: string, model: ModelKey): Promise<void> {
    switch (step.kind) {
      case 'decide':
        return runDecide(step, keyId, model);
      case 'peek':
        return runPeek(step, keyId, model);
      case 'settle':
        model.settle(step.version);
        return store.versions.settle([{ keyId, version: step.version }]);
      case 'announce':
        model.announce();
        return store.versions.announce([keyId]);
      case 'retire':
        model.shared = 'deleted';
        model.window = undefined;
        return store.versions.retire(keyId);
      case 'endWindow':
        model.window = undefined;
        return store.endWindow(keyId);
      case 'lapseVersion':
        model.shared = 'nothing';
        return store.lapseVersion(keyId);
    }
  }

  async function runDecide(step: Step & { kind: 'decide' }, keyId: string, model: ModelKey): Promise<void> {
    const { version, fresh, limit, period: periodText, replica } = step;
    const limiter = store.limiters[replica % store.limiters.length];
    if (limiter === undefined) throw new Error('no limiter');
    const asked = limit === null ? null : quota(limit, periodText);
    const decision = await decide(limiter, subject(keyId, { version, fresh, quota: asked }));
    if (model.isStale(version, fresh)) {
      expect(decision).toEqual({ kind: 'stale' });
      return;
    }
    if (asked === null) {
      expect(decision).toEqual({ kind: 'unlimited', degraded: false });
      return;
    }
    expect(decision).toEqual(expectedCount(model, asked, decision));
  }

  function expectedCount(model: ModelKey, asked: ReturnType<typeof quota>, decision: Decision): Decision {
    if (!('nowMs' in decision)) throw new Error(`not counted: ${JSON.stringify(decision)}`);
    const { nowMs } = decision;
    const { limit, period } = asked;
    if (model.window?.token !== period.token) {
      model.window = { token: period.token, resetAtMs: windowEndMs(nowMs, period), used: 0 };
    }
    const { resetAtMs, used } = model.window;
    if (used >= limit) return { kind: 'denied', resetAtMs, nowMs, degraded: false };
    model.window.used += 1;
    return { kind: 'admitted', remaining: limit - used - 1, resetAtMs, nowMs, degraded: false };
  }

  async function runPeek(step: Step & { kind: 'peek' }, keyId: string, model: ModelKey): Promise<void> {
    const asked = quota(4, step.period);
    const isSame = model.window?.token === asked.period.token;
    expect(await store.limiters[0]?.peek(keyId, asked)).toMatchObject({
      used: isSame ? model.window?.used : 0,
      resetAtMs: isSame ? model.window?.resetAtMs : null,
    });
  }
});
