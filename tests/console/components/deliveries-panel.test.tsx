/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, expect, it } from '@jest/globals';
import { useQueryClient } from '@tanstack/react-query';
import { screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { DeliveriesPanel } from '../../../src/console/pages/webhooks/deliveries-panel.tsx';
import type { Delivery, Webhook } from '../../../src/console/pages/webhooks/shown-webhook.ts';
import { withScriptedGateway } from './support/stage.tsx';

const WEBHOOK = { webhookId: 'whk_1', events: ['tollgate.plan.*'], enabled: true } as unknown as Webhook;
const FAILED = { at: '2026-01-01T00:00:00Z', status: 503, durationMs: 12, error: null };

const gateway = withScriptedGateway();

function delivery(deliveryId: string, eventType: string, attempts: readonly object[] = []): Delivery {
  return {
    ...{ deliveryId, eventType, eventIds: ['evt_1'], createdAt: '2026-01-01T00:00:00Z', status: 'pending' },
    ...{ attempts, responseStatus: null, durationMs: null, nextAttemptAt: null },
    body: JSON.stringify({ id: `body of ${deliveryId}` }),
  } as Delivery;
}

/** Of a window that is taller than all rows. */
class InSight {
  readonly #report: IntersectionObserverCallback;

  constructor(report: IntersectionObserverCallback) {
    this.#report = report;
  }

  observe(target: Element): void {
    const entry = { target, isIntersecting: true } as unknown as IntersectionObserverEntry;
    queueMicrotask(() => this.#report([entry], this as unknown as IntersectionObserver));
  }

  disconnect(): void {}
}

const { IntersectionObserver: unseen } = globalThis;
afterEach(() => {
  globalThis.IntersectionObserver = unseen;
  window.history.replaceState(null, '', '/');
});

/** The panel, and what a poll does. */
function Stage() {
  const queries = useQueryClient();
  return (
    <>
      <DeliveriesPanel webhook={WEBHOOK} />
      <button type="button" onClick={() => void queries.invalidateQueries()}>
        Poll
      </button>
    </>
  );
}

it('a delivery stays open, as it was last, when the list no longer has it', async () => {
  const lists = (...deliveries: readonly Delivery[]) => gateway.reply(200, { deliveries });
  lists(delivery('dlv_1', 'tollgate.plan.created'));
  gateway.render(['webhooks:read', 'webhooks:write', 'plans:read', 'keys:read'], <Stage />);
  const user = userEvent.setup();
  const poll = screen.getByText('Poll');
  await user.click(await screen.findByRole('button', { name: 'tollgate.plan.created' }));
  await screen.findByText(/body of dlv_1/);
  lists(delivery('dlv_1', 'tollgate.plan.created', [FAILED]));
  poll.click();
  await screen.findByRole('table', { name: 'Attempts' });
  expect(screen.queryByText(/no longer has this delivery/)).toBeNull();
  lists(...Array.from({ length: 25 }, (_, index) => delivery(`newer_${index}`, 'tollgate.plan.updated')));
  poll.click();
  expect(await screen.findAllByText('tollgate.plan.updated')).toHaveLength(25);
  screen.getByText(/body of dlv_1/);
  screen.getByRole('table', { name: 'Attempts' });
  screen.getByText(/no longer has this delivery/);
  screen.getByRole('button', { name: 'Send again' });
  await user.keyboard('{Escape}');
  expect(screen.queryByText(/body of dlv_1/)).toBeNull();
});

it('deliveries are read again as they change, until the reader asks for more of them', async () => {
  globalThis.IntersectionObserver = InSight as unknown as typeof IntersectionObserver;
  const newest = [delivery('dlv_2', 'tollgate.plan.updated')];
  const pageAt = (url: string) =>
    url.includes('cursor=')
      ? { deliveries: [delivery('dlv_1', 'tollgate.plan.created')] }
      : { deliveries: newest, nextCursor: 'older' };
  gateway.respond(({ url }) => ({ status: 200, body: pageAt(url) }));
  gateway.render(['webhooks:read'], <Stage />);
  await screen.findByText('tollgate.plan.updated');
  const more = await screen.findByRole('button', { name: 'Load more' });
  newest.unshift(delivery('dlv_3', 'tollgate.plan.deleted'));
  screen.getByText('Poll').click();
  await screen.findByText('tollgate.plan.deleted');
  expect(gateway.requests.map(({ url }) => url.includes('cursor='))).toEqual([false, false]);
  await userEvent.setup().click(more);
  await screen.findByText('tollgate.plan.created');
  expect(screen.queryByRole('button', { name: 'Load more' })).toBeNull();
});

it('the filter changes nothing else in the address of the page', async () => {
  window.history.replaceState(null, '', '/?from=mail');
  gateway.reply(200, { deliveries: [] });
  gateway.render(['webhooks:read'], <Stage />);
  const user = userEvent.setup();
  const filter = screen.getByRole('combobox', { name: 'Status of the deliveries' });
  await user.selectOptions(filter, 'failed');
  expect(window.location.search).toBe('?from=mail&status=failed');
  await user.click(await screen.findByRole('button', { name: 'Show all' }));
  expect(window.location.search).toBe('?from=mail');
});

it('the first delivery that was loaded has the focus, unless the reader has moved it', async () => {
  const pages = [
    { deliveries: [delivery('dlv_4', 'tollgate.plan.created')], nextCursor: '1' },
    { deliveries: [delivery('dlv_3', 'tollgate.plan.updated')], nextCursor: '2' },
    { deliveries: [delivery('dlv_2', 'tollgate.plan.deleted')], nextCursor: '3' },
    { deliveries: [delivery('dlv_1', 'tollgate.webhook.disabled')] },
  ];
  let response = Promise.resolve();
  gateway.respond(async ({ url }) => {
    await response;
    return { status: 200, body: pages[Number(/cursor=(\d)/.exec(url)?.[1] ?? 0)] ?? {} };
  });
  gateway.render(['webhooks:read'], <Stage />);
  const user = userEvent.setup();
  const load = async (eventType: string, meanwhile = () => {}) => {
    const more = await screen.findByRole('button', { name: 'Load more' });
    const arrival = Promise.withResolvers<void>();
    response = arrival.promise;
    await user.click(more);
    meanwhile();
    arrival.resolve();
    return screen.findByRole('button', { name: eventType });
  };
  expect(await load('tollgate.plan.updated')).toBe(document.activeElement);
  const elsewhere = screen.getByRole('combobox', { name: 'Status of the deliveries' });
  await load('tollgate.plan.deleted', () => elsewhere.focus());
  expect(document.activeElement).toBe(elsewhere);
  expect(await load('tollgate.webhook.disabled')).toBe(document.activeElement);
  expect(screen.queryByRole('button', { name: 'Load more' })).toBeNull();
});
