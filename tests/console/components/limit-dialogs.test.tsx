/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { expect, it } from '@jest/globals';
import { screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import type { LimitCounter } from '../../../src/console/pages/keys/key-model.ts';
import { GrantDialog } from '../../../src/console/pages/keys/limits/grant-dialog.tsx';
import { ResetDialog } from '../../../src/console/pages/keys/limits/reset-dialog.tsx';
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
