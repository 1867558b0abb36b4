import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { statusOf } from '../support/burst.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startInProcessFleet(1);
});
afterAll(() => fleet?.stop());

describe('the statistics of a key, read from a replica', () => {
  it('include every response that the replica has sent before', async () => {
    const url = fleet.replicas[0]?.url ?? '';
    for (let round = 0; round < 10; round++) {
      const { id, secret } = await fleet.admin.makeKey('asked about');
      for (let request = 1; request <= 3; request++) {
        expect(await statusOf(`${url}/a`, secret)).toBe(200);
        const { usage } = await fleet.admin.detail(id);
        expect(usage).toMatchObject({ totalRequests: request, successfulRequests: request });
        expect(usage.endpoints).toMatchObject([{ endpoint: '/a', requests: request }]);
      }
    }
  });
});
