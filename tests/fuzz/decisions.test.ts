import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { fuzzDecisions } from './decisions/fuzz-decisions.ts';
import { DECISION_SETTINGS } from './decisions/play-decisions.ts';

const SEQUENCES = 15;
/** Longer than the sequences take on a machine that has much else to do. Milliseconds. */
const MOST_MS = 280_000;

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startInProcessFleet(1, DECISION_SETTINGS);
});
afterAll(() => fleet?.stop());

it(
  'a random request has the same verdict by /authorize and /verify as by the proxy',
  async () => {
    const deadline = performance.now() + MOST_MS;
    const gateway = fleet.replicas[0] ?? { url: '', authorizeUrl: '' };
    const { played, findings } = await fuzzDecisions(
      { gateway, admin: fleet.admin },
      { firstSeed: 1, most: SEQUENCES, deadline },
    );
    expect(findings).toEqual([]);
    expect(played).toBeGreaterThan(0);
  },
  MOST_MS + 60_000,
);
