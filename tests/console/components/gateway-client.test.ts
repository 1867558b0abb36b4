/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { createGatewayClient } from '../../../src/console/api/gateway-client.ts';
import { withStubbedFetch } from './support/stubbed-fetch.ts';

const TIMEOUT_MS = 30_000;
const LONG_TIMEOUT_MS = 300_000;

const stub = withStubbedFetch();
/** Resolves when the gateway has got a request, to which it never responds. */
let received: Promise<void>;
beforeEach(() => {
  const { promise, resolve } = Promise.withResolvers<void>();
  received = promise;
  stub.respond(({ signal }) => {
    resolve();
    return new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  });
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
});
afterEach(() => void jest.useRealTimers());

const client = createGatewayClient('a token', () => undefined);
const params = { path: { rateLimitId: 'gold' } };
const session = { path: { sessionId: 'ses_1' } };

it.each<[string, number, () => Promise<unknown>]>([
  ['to read', TIMEOUT_MS, () => client.GET('/rate-limit')],
  ['to change', TIMEOUT_MS, () => client.PATCH('/rate-limit/{rateLimitId}', { params, body: {} })],
  ['to sign out', TIMEOUT_MS, () => client.DELETE('/tollgate/session/{sessionId}', { params: session })],
  ['to verify the audit log', LONG_TIMEOUT_MS, () => client.GET('/tollgate/audit-log/verify')],
  ['to delete a plan', LONG_TIMEOUT_MS, () => client.DELETE('/rate-limit/{rateLimitId}', { params })],
])('a request %s is given up after %i ms without a response', async (_what, timeoutMs, send) => {
  let isOver = false;
  const failure = send().catch((error: unknown) => {
    isOver = true;
    return error;
  });
  await received;
  await jest.advanceTimersByTimeAsync(timeoutMs - 1);
  expect(isOver).toBe(false);
  await jest.advanceTimersByTimeAsync(1);
  expect(await failure).toMatchObject({ name: 'TimeoutError' });
});
