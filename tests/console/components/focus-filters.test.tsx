/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { beforeEach, describe, expect, it } from '@jest/globals';
import { screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { useState } from 'react';
import { AuditPage, NewEntries } from '../../../src/console/pages/audit-page.tsx';
import { KeysPage } from '../../../src/console/pages/keys-page.tsx';
import { PlansPage } from '../../../src/console/pages/plans-page.tsx';
import { UsagePage } from '../../../src/console/pages/usage-page.tsx';
import { DeliveriesPanel } from '../../../src/console/pages/webhooks/deliveries-panel.tsx';
import { HeaderFields } from '../../../src/console/pages/webhooks/header-fields.tsx';
import type { HeaderDraft } from '../../../src/console/pages/webhooks/webhook-draft.ts';
import { WEBHOOK } from './support/records.ts';
import { withScriptedGateway } from './support/stage.tsx';

const gateway = withScriptedGateway();
const user = userEvent.setup();

/** An empty list of each kind. The total makes the list of keys say that it hides some. */
const NOTHING = {
  apiKeys: [],
  rateLimits: [],
  entries: [],
  deliveries: [],
  jobs: [],
  total: 1,
  timeZone: 'UTC',
};
const HOUR = {
  from: '2026-01-05T10:00:00Z',
  to: '2026-01-05T11:00:00Z',
  completeUntil: '2026-01-05T11:00:00Z',
};

const ROW = {
  ...{ start: HOUR.from, requests: 1, successful: 1, failed: 0, rateLimited: 0, shadowLimited: 0 },
  ...{ averageResponseTimeMs: 1, forwarded: 1 },
};

beforeEach(() => gateway.reply(200, { ...NOTHING, ...HOUR, rows: [ROW] }));

const focused = () => document.activeElement?.getAttribute('aria-label') ?? labelOf(document.activeElement);

function labelOf(control: Element | null): string | null | undefined {
  return control?.closest('label')?.querySelector('span')?.textContent;
}

function Log() {
  const [isBehind, setBehind] = useState(true);
  return (
    <>
      <search>
        <select aria-label="Action" />
      </search>
      <NewEntries entries={{ isBehind, refresh: () => setBehind(false) }} />
    </>
  );
}

function Headers() {
  const [headers, setHeaders] = useState<readonly HeaderDraft[]>();
  return (
    <HeaderFields headers={headers} present={['x-team', 'x-key']} onChange={setHeaders} error={undefined} />
  );
}

describe('a button that goes away when it is pressed', () => {
  it.each([
    ['Show all', 'State', KeysPage, ''],
    ['Clear filters', 'State', KeysPage, '?tag=eu'],
    ['Remove the filter Tag', 'State', KeysPage, '?tag=eu'],
    ['Clear', 'Action', AuditPage, '?action=key.create'],
    ['Clear the filters', 'Action', AuditPage, '?action=key.create'],
    ['Clear filters', 'Range', UsagePage, '?tag=eu'],
    ['Show all keys', 'Range', UsagePage, '?consumerApiKeyId=key_1'],
    ['Clear', 'Range', UsagePage, `?at=${HOUR.from}&interval=hour&from=2026-01-05&to=2026-01-05`],
    ['Clear the search', 'Search plans', PlansPage, '?q=gold'],
    ['Show all', 'Status of the deliveries', () => <DeliveriesPanel webhook={WEBHOOK} />, '?status=failed'],
  ])('gives its focus to a filter: %s, to %s', async (name, filter, Page, address) => {
    window.history.replaceState(null, '', `/${address}`);
    gateway.render(['keys:read', 'webhooks:read', 'plans:read', 'usage:read', 'audit:read'], <Page />);
    const [button] = await screen.findAllByRole('button', { name });
    if (button !== undefined) await user.click(button);
    await waitFor(() => expect(button?.isConnected).toBe(false));
    expect(focused()).toBe(filter);
  });

  it.each(['Chart by day', 'Only 2020-01-02 to 2020-12-30'])(
    'gives its focus to a filter: %s, in place of a chart that is too large',
    async (name) => {
      const largestRange = { from: '2020-01-01T00:00:00Z', to: '2021-01-01T00:00:00Z' };
      gateway.respond(({ url }) => {
        const { searchParams } = new URL(url, gateway.url);
        const [from, to] = ['from', 'to'].map((each) => Date.parse(searchParams.get(each) ?? '')) as [
          number,
          number,
        ];
        return searchParams.get('interval') === 'hour' && to - from > 400 * 86_400_000
          ? { status: 400, body: { error: 'Too large.', code: 'range_too_large', largestRange } }
          : { status: 200, body: { ...NOTHING, ...HOUR, rows: [ROW] } };
      });
      window.history.replaceState(null, '', '/?from=2020-01-01&to=2025-12-31&interval=hour');
      gateway.render(['usage:read'], <UsagePage />);
      const button = await screen.findByRole('button', { name });
      await user.click(button);
      await waitFor(() => expect(button.isConnected).toBe(false));
      expect(focused()).toBe('Range');
    },
  );

  it('gives its focus to a filter, above the entries that it shows', async () => {
    gateway.render([], <Log />);
    await user.click(screen.getByRole('button', { name: 'Show new entries' }));
    expect(screen.queryByRole('button')).toBeNull();
    expect(focused()).toBe('Action');
  });

  it('gives its focus to the first of the fields that it makes', async () => {
    gateway.render([], <Headers />);
    await user.click(screen.getByRole('button', { name: 'Write them again' }));
    expect(focused()).toBe('Value of header 1');
  });

  it('gives no focus to the value of a header that is added afterwards', async () => {
    gateway.render([], <Headers />);
    for (const name of ['Write them again', 'Remove header 1', 'Remove header 1', 'Add header'])
      await user.click(screen.getByRole('button', { name }));
    expect(document.activeElement).toBe(screen.getByRole('button', { name: 'Add header' }));
  });
});
