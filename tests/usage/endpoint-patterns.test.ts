import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { until } from '../support/until.ts';

describe('endpoint patterns', () => {
  let fleet: Fleet;
  beforeAll(async () => {
    const ENDPOINT_PATTERNS = '/v1/users/me,/v1/users/{id},/v1/files/**,/v1/*/list';
    fleet = await startInProcessFleet(1, { ENDPOINT_PATTERNS });
  });
  afterAll(() => fleet?.stop());

  it('name the endpoints of the paths that they match in any spelling, and leave the others', async () => {
    const { id, secret } = await fleet.admin.makeKey('of patterns');
    const paths = [
      ...['/v1/users/1?page=2', '/v1/users/2', '/v1/users/%31'],
      ...['/v1/users/me', '/v1/users/1/cart', '/V1/users/1'],
      ...['/v1/files/a/b', '/v1/files', '/v1/orders/list'],
    ];
    for (const path of paths) {
      const { status } = await fetch(`${fleet.replicas[0]?.url}${path}`, {
        headers: { authorization: `Bearer ${secret}` },
      });
      expect(status).toBe(200);
    }
    await until(async () => (await fleet.admin.detail(id)).usage.totalRequests === paths.length);
    const { usage } = await fleet.admin.detail(id);
    const requests = usage.endpoints.map((each: { endpoint: string; requests: number }) => [
      each.endpoint,
      each.requests,
    ]);
    expect(Object.fromEntries(requests)).toEqual({
      '/v1/users/{id}': 4,
      '/v1/files/**': 2,
      '/v1/users/me': 1,
      '/v1/*/list': 1,
      '/v1/users/1/cart': 1,
    });
  });
});
