/**
 * @jest-environment ./tests/console/components/support/browser-environment.ts
 * @jest-environment-options {"timeZone": "Europe/Berlin"}
 */
import { expect, it } from '@jest/globals';
import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { ToastRegion } from '../../../src/console/components/states/toast.tsx';
import type { LimitCounter } from '../../../src/console/pages/keys/key-model.ts';
import { GrantDialog } from '../../../src/console/pages/keys/limits/grant-dialog.tsx';
import { OverrideDialog } from '../../../src/console/pages/keys/limits/override-dialog.tsx';
import { ResetDialog } from '../../../src/console/pages/keys/limits/reset-dialog.tsx';
import { KEY } from './support/records.ts';
import { withScriptedGateway } from './support/stage.tsx';

const gateway = withScriptedGateway();

const COUNTER: LimitCounter = {
  ...{ limitId: 'main', limit: 10, baseLimit: 10, period: '1 minute', per: 'customer', mode: 'enforce' },
  ...{ used: 1, remaining: 9, granted: null, open: true, resetTime: '2099-01-01T00:00:00Z' },
};

it.each([
  ['Reset', ResetDialog],
  ['Grant', GrantDialog],
])('%s shows beside the field that a customer or a reason is not valid', async (name, LimitDialog) => {
  gateway.reply(400, {
    ...{ error: 'The request body is not valid.', code: 'invalid_body' },
    errors: [
      { field: 'customerId', message: 'must be 1 to 128 printable ASCII characters' },
      { field: 'reason', message: 'must be a string of at most 256 characters' },
    ],
  });
  gateway.render(
    ['limits:write'],
    <LimitDialog keyId="key_1" counter={COUNTER} customerId="" onClose={() => undefined} />,
  );
  const user = userEvent.setup();
  await user.type(screen.getByLabelText('Customer'), 'Zoë');
  await user.click(screen.getByRole('button', { name }));
  await screen.findByText(/^Nothing was saved/);
  for (const [label, rule] of [
    ['Customer', /printable ASCII characters/],
    [/^Reason/, /at most 256 characters/],
  ] as const) {
    const field = screen.getByLabelText(label);
    expect(field.getAttribute('aria-invalid')).toBe('true');
    screen.getByText(rule);
  }
});

const close = () => undefined;

async function openedDialog(): Promise<HTMLElement> {
  const shown = screen.getByRole('dialog');
  // The dialog moves the focus into it when it has opened.
  await waitFor(() => expect(shown.contains(document.activeElement)).toBe(true));
  return shown;
}

it.each([
  [
    ...['an override', 'Limit', 'Save', 'main is 2,000 per 1 minute for this key'],
    { overrides: { main: { limit: 2000 } } },
    <OverrideDialog key="override" apiKey={KEY} etag={'"1"'} counter={COUNTER} onClose={close} />,
  ],
  [
    ...['a grant', 'Requests', 'Grant', '2,000 requests more for main'],
    { limitId: 'main', requests: 2000, customerId: 'anonymous' },
    <GrantDialog key="grant" keyId="key_1" counter={COUNTER} customerId="" onClose={close} />,
  ],
] as const)(
  '%s takes 2,000 as typed, and never 2.000 as 2',
  async (_what, label, button, done, sent, dialog) => {
    gateway.reply(200, {});
    gateway.render(
      ['keys:write', 'limits:write'],
      <>
        {dialog}
        <ToastRegion />
      </>,
    );
    const user = userEvent.setup();
    const shown = await openedDialog();
    const enter = async (text: string) => {
      const field = within(shown).getByLabelText(label);
      await user.clear(field);
      await user.type(field, text);
      await user.click(screen.getByRole('button', { name: button }));
      return field;
    };
    for (const text of ['2.000', '2k', '0', ' ']) {
      const field = await enter(text);
      expect(document.activeElement).toBe(field);
      expect(field.getAttribute('aria-invalid')).toBe('true');
    }
    screen.getByText('Enter a number.');
    expect(gateway.requests).toEqual([]);
    await enter('2,000');
    await screen.findAllByText(done);
    expect(gateway.requests.map(({ body }) => JSON.parse(body))).toEqual([sent]);
  },
);

/** A local time that comes twice in its night. */
const TWICE = '2027-10-31T02:30';

it.each([
  ['stays the same instant where the limit alone is edited', [], '2027-10-31T01:30:00Z'],
  ['stays the same instant where it is typed back', ['2027-11-01T12:00', TWICE], '2027-10-31T01:30:00Z'],
  ['is the one that was typed', ['2027-11-01T12:00'], '2027-11-01T11:00:00Z'],
  ['goes where it is emptied', [''], undefined],
])('the end of an override %s', async (_what, typed, until) => {
  gateway.reply(200, {});
  const overrides = { main: { limit: 20, until: '2027-10-31T01:30:00Z' } };
  gateway.render(
    ['keys:write'],
    <>
      <OverrideDialog apiKey={{ ...KEY, overrides }} etag={'"1"'} counter={COUNTER} onClose={close} />
      <ToastRegion />
    </>,
  );
  const user = userEvent.setup();
  await openedDialog();
  const limit = screen.getByLabelText('Limit');
  await user.clear(limit);
  await user.type(limit, '40');
  const end = screen.getByLabelText(/^Until/);
  expect(end).toHaveProperty('value', TWICE);
  for (const value of typed) fireEvent.change(end, { target: { value } });
  await user.click(screen.getByRole('button', { name: 'Save' }));
  await screen.findAllByText('main is 40 per 1 minute for this key');
  expect(gateway.requests.map(({ body }) => JSON.parse(body))).toEqual([
    { overrides: { main: { limit: 40, until } } },
  ]);
});
