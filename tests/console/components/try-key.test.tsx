/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { expect, it } from '@jest/globals';
import { act, screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { createManagementClient } from '../../../src/client/management-client.ts';
import type { Scope } from '../../../src/console/api/api-context.tsx';
import { TryKeyButton } from '../../../src/console/pages/keys/try/try-key-dialog.tsx';
import { axeFaults } from './support/axe-faults.ts';
import { withScriptedGateway } from './support/stage.tsx';
import { respondTo } from './support/stubbed-fetch.ts';

const gateway = withScriptedGateway();

const VERDICT = {
  ...{ allowed: true, status: 200, code: null, consumerApiKeyId: 'key_1', name: 'mobile' },
  ...{ externalId: null, rateLimitId: 'standard', tags: [], metadata: null, expiresAt: null },
  customerId: 'acme',
  limits: [{ limitId: 'main', limit: 1000, remaining: 12, resetTime: '2099-01-01T00:00:00Z' }],
  retryAfterSeconds: null,
};

async function show(scopes: readonly Scope[] = ['keys:verify', 'keys:read']) {
  gateway.render(scopes, <TryKeyButton />);
  const user = userEvent.setup();
  await user.click(screen.getByRole('button', { name: 'Try a key' }));
  return user;
}

it('a key is tried without being counted, and the decision is shown', async () => {
  gateway.reply(200, VERDICT);
  const user = await show();
  // A password manager fills and keeps every field of the type "password".
  expect(screen.getByLabelText<HTMLInputElement>('Secret')).toMatchObject({
    type: 'text',
    className: 'control masked',
  });
  await user.type(screen.getByLabelText('Secret'), ' tg_tried ');
  await user.clear(screen.getByLabelText('Method'));
  await user.type(screen.getByLabelText('Method'), 'post');
  await user.type(screen.getByLabelText(/^Customer/), 'acme');
  await user.click(screen.getByRole('button', { name: 'Try' }));
  await screen.findByText('Allowed');
  expect(gateway.requests.map(({ method, url, body }) => [method, url, JSON.parse(body)])).toEqual([
    [
      'POST',
      '/api-keys/verify',
      { secret: 'tg_tried', method: 'POST', path: '/', customerId: 'acme', count: false },
    ],
  ]);
  expect(screen.getByRole('link', { name: 'mobile' }).getAttribute('href')).toMatch(/\/keys\/key_1$/);
  expect(screen.getByText(/^12 of 1,000 left/)).toBeTruthy();
  expect(await axeFaults()).toEqual([]);
  // The decision was about another request than the one that is typed now.
  await user.type(screen.getByLabelText('Path'), 'other');
  expect(screen.queryByText('Allowed')).toBeNull();
});

it.each([
  [{ allowed: false, status: 401, code: 'invalid_api_key' }, 'Rejected: 401 invalid_api_key', null],
  [
    { ...VERDICT, allowed: false, status: 429, code: 'limited', retryAfterSeconds: 30 },
    'Rejected: 429 limited',
    'after 30 s',
  ],
])('a rejection of a key that is tried is shown: %#', async (verdict, sentence, retry) => {
  gateway.reply(200, verdict);
  const user = await show(['keys:verify']);
  await user.type(screen.getByLabelText('Secret'), 'tg_tried');
  await user.click(screen.getByRole('button', { name: 'Try' }));
  expect(await screen.findByText(sentence)).toBeTruthy();
  if (retry !== null) expect(screen.getByText(retry)).toBeTruthy();
  // Without the scope for it, no link leads to the key.
  expect(screen.queryByRole('link')).toBeNull();
});

it.each([
  [200, VERDICT],
  [400, { error: 'The key is wrong.', code: 'validation_error' }],
])('the response to a request that was edited meanwhile is dropped: %s', async (status, body) => {
  const user = await show();
  const release = Promise.withResolvers<void>();
  const stub = respondTo(async () => {
    await release.promise;
    return { status, body };
  });
  try {
    await user.click(screen.getByRole('button', { name: 'Try' }));
    await user.type(screen.getByLabelText('Path'), 'other');
    await act(async () => {
      release.resolve();
      // A later response takes the same steps, so that the one before it has been read as well.
      await createManagementClient({ url: gateway.url, token: 'a token' }).GET('/rate-limit');
    });
    expect(screen.queryByRole('region', { name: 'Decision' })).toBeNull();
    expect(screen.queryByRole('alert')).toBeNull();
    expect(screen.getByRole('button', { name: 'Try' })).toBeTruthy();
  } finally {
    stub.restore();
  }
});

it('a fault of a field is shown beside it when a key is tried', async () => {
  gateway.reply(400, {
    ...{ error: 'Invalid.', code: 'validation_error' },
    errors: [{ field: 'path', message: 'must be a path' }],
  });
  const user = await show();
  await user.click(screen.getByRole('button', { name: 'Try' }));
  expect(await screen.findByText('must be a path')).toBeTruthy();
  expect(screen.getByLabelText('Path').getAttribute('aria-invalid')).toBe('true');
});

it('a key can be tried only with the scope for it', () => {
  gateway.render(['keys:read', 'keys:write'], <TryKeyButton />);
  expect(screen.queryByRole('button')).toBeNull();
});
