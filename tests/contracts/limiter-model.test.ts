import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { customerWindowName } from '../../src/limiter/customer-windows.ts';
import { windowEndMs } from '../../src/limiter/period.ts';
import type { Decision } from '../../src/limiter/rate-limiter.ts';
import { type Limit, limitAt } from '../../src/limiter/request-limits.ts';
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
const CUSTOMERS = ['acme', 'b:c d', 'anonymous', '__other__'] as const;
const LONG_AGO_MS = 1;
const FAR_AWAY_MS = Date.UTC(2200, 0);

interface DecideStep {
  readonly kind: 'decide';
  readonly version: string;
  readonly fresh: boolean;
  readonly isUnlimited: boolean;
  /** Which of the additional limits apply to the request. */
  readonly applying: readonly boolean[];
  readonly cost: number;
  readonly customerId: string;
  readonly replica: number;
}
type Step =
  | DecideStep
  | { readonly kind: 'edit'; readonly plan: readonly Limit[] }
  | { readonly kind: 'read'; readonly customerId: string }
  | { readonly kind: 'grant'; readonly index: number; readonly customerId: string; readonly units: number }
  | { readonly kind: 'reset'; readonly index: number; readonly customerId: string | null }
  | { readonly kind: 'endWindow'; readonly index: number; readonly customerId: string }
  | { readonly kind: 'publishVersion'; readonly version: string }
  | { readonly kind: 'markStale' | 'retire' | 'expireVersion' };

interface ModelWindow {
  readonly resetAtMs: number;
  used: number;
  granted: number;
}

/** What the ports promise about one key, as simply as it can be said. */
class ModelKey {
  shared: 'nothing' | 'changing' | 'overlapping' | 'deleted' | { readonly version: string } = 'nothing';
  plan: readonly Limit[] = [quota(3, 'hour')];
  readonly windows = new Map<string, ModelWindow>();

  isStale(version: string, fresh: boolean): boolean {
    if (this.shared === 'deleted') return true;
    if (fresh) {
      const isOlder = typeof this.shared === 'object' && this.shared.version < version;
      if (this.shared === 'nothing' || isOlder) this.shared = { version };
      return false;
    }
    return typeof this.shared === 'string' || this.shared.version !== version;
  }

  publishVersion(version: string): void {
    if (this.shared === 'deleted') return;
    if (typeof this.shared === 'object' && this.shared.version === version) return;
    const isOurs = this.shared === 'changing' || this.shared === 'nothing';
    this.shared = isOurs ? { version } : 'overlapping';
  }

  markStale(): void {
    if (this.shared === 'deleted') return;
    this.shared = this.shared === 'changing' || this.shared === 'overlapping' ? 'overlapping' : 'changing';
  }

  /** All or nothing: counted in every window with room, if every enforced one has room. */
  decide(limits: readonly Limit[], { cost, customerId }: DecideStep, nowMs: number): Decision {
    const met = limits.map((limit) => {
      const name = nameOf(limit, customerId);
      const open = this.windows.get(name);
      const isExceeded = cost > 0 && (open?.used ?? 0) + cost > limitAt(limit, nowMs);
      return { limit, name, open, isExceeded };
    });
    const isLimited = met.some(({ limit, isExceeded }) => isExceeded && limit.mode === 'enforce');
    const windows = met.map(({ limit, name, open, isExceeded }) => {
      const resetAtMs = open?.resetAtMs ?? windowEndMs(nowMs, limit.period);
      const isCounted = !isLimited && !isExceeded && cost > 0;
      if (isCounted) {
        const window = open ?? { resetAtMs, used: 0, granted: 0 };
        window.used += cost;
        this.windows.set(name, window);
      }
      const isShared = limit.per === 'customer' && customerId === '__other__';
      const used = this.windows.get(name)?.used ?? 0;
      return { limit, quota: limitAt(limit, nowMs), used, resetAtMs, isExceeded, isShared };
    });
    return { kind: isLimited ? 'limited' : 'allowed', windows, nowMs, degraded: false };
  }
}

function nameOf(limit: Limit, customerId: string): string {
  return limit.per === 'customer' ? customerWindowName(limit, customerId) : limit.windowName;
}

const anyPeriod = fc.constantFrom(...PERIODS);
const anyCustomer = fc.constantFrom(...CUSTOMERS);
const anyVersion = fc.constantFrom('1.0', '1.1', '2.1');
const anyOverride = fc.option(
  fc.record({
    limit: fc.integer({ min: 1, max: 6 }),
    endsAtMs: fc.constantFrom(null, LONG_AGO_MS, FAR_AWAY_MS),
  }),
  { freq: 3, nil: undefined },
);

function anyLimit(id: string): fc.Arbitrary<Limit> {
  return fc
    .record({
      limit: fc.integer({ min: 1, max: 6 }),
      period: anyPeriod,
      per: fc.constantFrom('key' as const, 'customer' as const),
      mode: fc.constantFrom('enforce' as const, 'enforce' as const, 'shadow' as const),
      override: anyOverride,
    })
    .map(({ limit, period, per, mode, override }) =>
      quota(limit, period, {
        id,
        ...(id === 'main' ? {} : { per, mode }),
        ...(override === undefined ? {} : { ...override, baseLimit: limit }),
      }),
    );
}

const anyPlan = fc
  .tuple(anyLimit('main'), anyLimit('a'), anyLimit('b'), anyLimit('c'), fc.integer({ min: 1, max: 4 }))
  .map(([main, a, b, c, size]) => [main, a, b, c].slice(0, size));

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('decide' as const),
      version: anyVersion,
      fresh: fc.boolean(),
      isUnlimited: fc.constantFrom(false, false, false, false, true),
      applying: fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()),
      cost: fc.constantFrom(1, 1, 1, 0, 2, 5),
      customerId: anyCustomer,
      replica: fc.nat(10),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('edit' as const), plan: anyPlan }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('read' as const), customerId: anyCustomer }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('grant' as const),
      index: fc.nat(3),
      customerId: anyCustomer,
      units: fc.integer({ min: 1, max: 9 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('reset' as const),
      index: fc.nat(3),
      customerId: fc.option(anyCustomer),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('endWindow' as const),
      index: fc.nat(3),
      customerId: anyCustomer,
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('publishVersion' as const), version: anyVersion }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('markStale', 'expireVersion') }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('retire' as const) }) },
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
      { numRuns: 200 },
    );
  });

  async function run(step: Step, keyId: string, model: ModelKey): Promise<void> {
    switch (step.kind) {
      case 'decide':
        return runDecide(step, keyId, model);
      case 'edit':
        model.plan = step.plan;
        return;
      case 'read':
        return runRead(step.customerId, keyId, model);
      case 'grant':
        return runGrant(step, keyId, model);
      case 'reset':
        return runReset(step, keyId, model);
      case 'endWindow': {
        const limit = model.plan[step.index];
        if (limit === undefined) return;
        model.windows.delete(nameOf(limit, step.customerId));
        return store.endWindow(keyId, nameOf(limit, step.customerId));
      }
      case 'publishVersion':
        model.publishVersion(step.version);
        return store.versions.publishVersion([{ keyId, version: step.version }]);
      case 'markStale':
        model.markStale();
        return store.versions.markStale([keyId]);
      case 'retire':
        model.shared = 'deleted';
        return store.versions.retire([{ keyId }]);
      case 'expireVersion':
        // A tombstone outlives all that could still ask for the key.
        if (model.shared === 'deleted') return;
        model.shared = 'nothing';
        return store.expireVersion(keyId);
    }
  }

  async function runDecide(step: DecideStep, keyId: string, model: ModelKey): Promise<void> {
    const { version, fresh, isUnlimited, applying, cost, customerId, replica } = step;
    const limiter = store.limiters[replica % store.limiters.length];
    if (limiter === undefined) throw new Error('no limiter');
    const limits = isUnlimited ? [] : model.plan.filter((_, index) => index === 0 || applying[index - 1]);
    const asked = subject(keyId, { version, fresh, limits, cost, customerId });
    const decision = await decide(limiter, asked);
    if (model.isStale(version, fresh)) expect(decision).toEqual({ kind: 'stale' });
    else if (isUnlimited) expect(decision).toEqual({ kind: 'unlimited', degraded: false });
    else if (!('windows' in decision)) throw new Error(`not counted: ${JSON.stringify(decision)}`);
    else expect(decision).toMatchObject({ ...model.decide(limits, step, decision.nowMs) });
  }

  async function runRead(customerId: string, keyId: string, model: ModelKey): Promise<void> {
    if (model.shared === 'deleted') return;
    const { counters } = await store.counters.read({ keyId, limits: model.plan, customerId });
    expect(counters).toEqual(
      model.plan.map((limit) => {
        const window = model.windows.get(nameOf(limit, customerId));
        if (window === undefined) return { limit, used: 0, granted: 0, resetAtMs: null };
        const { used, granted, resetAtMs } = window;
        return { limit, used: used + granted, granted, resetAtMs };
      }),
    );
  }

  async function runGrant(step: Step & { kind: 'grant' }, keyId: string, model: ModelKey): Promise<void> {
    const limit = model.plan[step.index];
    if (limit === undefined) return;
    const { customerId, units } = step;
    await store.counters.grant({ keyId, limits: [limit], customerId, units });
    if (model.shared === 'deleted') return;
    const [counter] = (await store.counters.read({ keyId, limits: [limit], customerId })).counters;
    const name = nameOf(limit, customerId);
    const known = model.windows.get(name);
    // When a window opens is the store's to say; where one is open it stays as it is.
    expect(counter?.resetAtMs).toEqual(known?.resetAtMs ?? expect.any(Number));
    const window = known ?? { resetAtMs: counter?.resetAtMs ?? 0, used: 0, granted: 0 };
    model.windows.set(name, { ...window, used: window.used - units, granted: window.granted + units });
  }

  async function runReset(
    { index, customerId }: Step & { kind: 'reset' },
    keyId: string,
    model: ModelKey,
  ): Promise<void> {
    const limit = model.plan[index];
    if (limit === undefined) return;
    await store.counters.reset({ keyId, limits: [limit], customerId });
    const whose = customerId === null ? CUSTOMERS : [customerId];
    for (const each of whose) model.windows.delete(nameOf(limit, each));
  }
});
