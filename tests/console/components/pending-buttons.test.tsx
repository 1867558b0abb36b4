/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { expect, it } from '@jest/globals';
import { screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { CsvButton } from '../../../src/console/components/forms/csv-button.tsx';
import { VerifyButton } from '../../../src/console/pages/audit/verify-button.tsx';
import { withScriptedGateway } from './support/stage.tsx';

const gateway = withScriptedGateway();

it.each([
  [
    'Download CSV',
    <CsvButton
      key="csv"
      name="usage.csv"
      fetchCsv={(client) =>
        client.GET('/api-keys/usage', { params: { query: { format: 'csv' } }, parseAs: 'blob' })
      }
    />,
  ],
  ['Verify the log', <VerifyButton key="verify" />],
])('"%s" can keep the focus, and sends nothing again, while it works', async (name, content) => {
  const { promise: response, resolve } = Promise.withResolvers<{ status: number; body: object }>();
  gateway.respond(() => response);
  gateway.render(['usage:read', 'audit:read'], content);
  const button = await screen.findByRole('button', { name });
  button.focus();
  await userEvent.keyboard('{Enter}');
  await waitFor(() => expect(button.getAttribute('aria-disabled')).toBe('true'));
  // A browser takes the focus from a disabled button.
  expect(button.hasAttribute('disabled')).toBe(false);
  await userEvent.keyboard('{Enter}');
  resolve({ status: 500, body: { error: 'It has failed.' } });
  await waitFor(() => expect(button.getAttribute('aria-disabled')).toBe('false'));
  expect(gateway.requests).toHaveLength(1);
});
