import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { until } from '../support/until.ts';

describe('the console of a gateway with ADMIN_PORT', () => {
  let fleet: Fleet;
  beforeAll(async () => {
    fleet = await startInProcessFleet(1, { ADMIN_PORT: '0' });
  });
  afterAll(() => fleet?.stop());

  it('is on that port alone, needs no token, and is counted under a name of its own', async () => {
    const [gateway] = fleet.replicas;
    const [, adminPort] = /"adminPort":(\d+)/.exec(gateway?.output() ?? '') ?? [];
    const shown = await fetch(`http://127.0.0.1:${adminPort}/tollgate/console/keys`);
    expect(shown.headers.get('content-security-policy')).toMatch(/^default-src 'self';/);
    // Built or not, it is the console that responds.
    expect(await shown.text()).toMatch(/<div id="root">|npm run build:console/);
    const asset = await fetch(`http://127.0.0.1:${adminPort}/tollgate/console/assets/none.js`);
    expect(asset.status).toBe(404);
    expect(await asset.json()).toMatchObject({ code: 'not_found' });

    // On the public port the path is a backend's like any other, and needs a key.
    const proxied = await fetch(`${gateway?.url}/tollgate/console`);
    expect(proxied.status).toBe(401);
    expect(await proxied.json()).toMatchObject({ code: 'missing_api_key' });

    await until(async () => {
      const metrics = await (await fetch(`${gateway?.opsUrl}/metrics`)).text();
      return /tollgate_management_requests_total\{outcome="invalid_request",operation="console"\} [12]\n/.test(
        metrics,
      );
    });
  });
});
