import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { simulate } from './simulate.ts';
import type { Scenario } from './world.ts';

const USUAL: Scenario = { limit: 300, windowMs: 60_000, demand: 0.9, skew: 0.9, movesAfter: 1 };

const scenarios = fc.record({
  limit: fc.integer({ min: 1, max: 300 }),
  windowMs: fc.constantFrom(1000, 10_000, 60_000),
  demand: fc.double({ min: 0.1, max: 3, noNaN: true }),
  skew: fc.double({ min: 1 / 3, max: 1, noNaN: true }),
  movesAfter: fc.integer({ min: 1, max: 4 }),
});
const cut = fc.record({
  region: fc.integer({ min: 0, max: 2 }),
  fromMs: fc.integer({ min: 0, max: 30_000 }),
  untilMs: fc.integer({ min: 30_000, max: 90_000 }),
});

describe('one limit that three regions share', () => {
  it('is never exceeded by one home, by fixed shares or by borrowing, whatever is late, lost or cut off', () => {
    fc.assert(
      fc.property(scenarios, fc.option(cut, { nil: undefined }), fc.nat(1000), (scenario, lost, seed) => {
        const world = lost === undefined ? scenario : { ...scenario, cut: lost };
        for (const policy of ['home', 'fixed', 'borrowing'] as const)
          expect([policy, simulate(world, policy, seed).worstOverAdmitted]).toEqual([policy, 0]);
      }),
      { numRuns: 60 },
    );
  });

  it('is exceeded where regions only tell each other their counts', () => {
    const { worstOverAdmitted } = simulate({ ...USUAL, limit: 6000, demand: 1.5, skew: 0.4 }, 'gossip', 1);
    expect(worstOverAdmitted).toBeGreaterThan(0);
  });

  it('is used up by fixed shares only where the load is even, and by borrowing also where it is not', () => {
    const rejected = (policy: 'fixed' | 'borrowing', skew: number) =>
      simulate({ ...USUAL, limit: 6000, skew }, policy, 1).wronglyRejected;
    expect(rejected('fixed', 0.9)).toBeGreaterThan(0.4);
    expect(rejected('borrowing', 0.9)).toBeLessThan(0.01);
  });

  it('plays the same each time, and otherwise with another seed', () => {
    const first = simulate(USUAL, 'borrowing', 1);
    expect(simulate(USUAL, 'borrowing', 1)).toEqual(first);
    expect(simulate(USUAL, 'borrowing', 2)).not.toEqual(first);
  });
});
