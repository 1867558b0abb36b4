/**
 * @jest-environment ./tests/console/components/support/browser-environment.ts
 * @jest-environment-options {"timeZone": "Etc/Unknown"}
 */
import { expect, it } from '@jest/globals';
import { waitFor } from '@testing-library/react';
import { KeyUsagePanel } from '../../../src/console/pages/keys/detail/key-usage-panel.tsx';
import { withScriptedGateway } from './support/stage.tsx';

const gateway = withScriptedGateway();

it('days of usage are those of UTC where the browser does not know its time zone', async () => {
  window.history.replaceState(null, '', '/tollgate/console/keys/key_1?range=30d');
  gateway.reply(200, {
    ...{ from: '2026-02-01T00:00:00Z', to: '2026-03-03T00:00:00Z', completeUntil: '2026-03-03T00:00:00Z' },
    ...{ interval: 'day', timeZone: 'UTC', rows: [] },
  });
  gateway.render(['usage:read'], <KeyUsagePanel keyId="key_1" />);
  // The code that draws is loaded later: the file must not end before.
  await waitFor(() => expect(document.querySelector('canvas')).not.toBeNull());
  const zones = gateway.requests.map(({ url }) => new URL(url, gateway.url).searchParams.get('timeZone'));
  // On a busy machine the page looks again before that code is there.
  expect([...new Set(zones)]).toEqual(['UTC']);
});
