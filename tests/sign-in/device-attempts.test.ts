import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { pino } from 'pino';
import { systemRandom } from '../../src/platform/random.ts';
import { SecretVault } from '../../src/secrets/secret-vault.ts';
import { SignIn } from '../../src/sign-in/sign-in.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startSignIn, type TestSignIn } from './start-sign-in.ts';
import { TestBrowser } from './test-provider.ts';

describe('A sign-in on another device', () => {
  let gateway: TestSignIn;
  beforeAll(async () => {
    gateway = await startSignIn({ deviceFlow: 'for the client' });
  });
  afterAll(() => gateway.stop());

  const send = async (path: string, body: object) => {
    const response = await fetch(`${gateway.origin}/tollgate/sign-in/command${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    return (await response.json()) as Record<string, unknown>;
  };

  it('can be finished as long as the code of the provider is valid', async () => {
    const { ticket, verificationUriComplete, expiresInS } = await send('', {});
    expect(expiresInS).toBe(900);
    gateway.management.clock.advance(660_000);
    await new TestBrowser().submitForms(String(verificationUriComplete));
    expect(await send('/finish', { ticket })).toMatchObject({ state: 'signed_in', name: 'Alice Example' });
  });
});

it.each([
  [900, 900],
  [86_400, 3600],
])('A sign-in with a code that is valid for %i s ends after %i s', async (expiresInS, endsAfterS) => {
  const unused = () => Promise.reject(new Error('not used'));
  const clock = new ManualClock(0);
  const signIn = new SignIn({
    provider: {
      ...{ authorizationUrl: unused, redeem: unused, redeemDevice: async () => 'pending' },
      startDevice: async () => ({
        ...{ deviceCode: 'x', userCode: 'A', verificationUri: 'https://login.example.com/device' },
        ...{ verificationUriComplete: null, expiresInS, intervalS: 5 },
      }),
    },
    sessions: { open: unused },
    vault: new SecretVault([Buffer.alloc(32, 7)], systemRandom),
    ...{ clock, log: pino({ level: 'silent' }) },
  });
  const context = { requestId: 'r', address: '192.0.2.1' };
  const { device, ticket = '' } = (await signIn.beginDevice(context)) ?? {};
  expect(device?.expiresInS).toBe(endsAfterS);
  clock.advance(endsAfterS * 1000 - 1);
  expect(await signIn.finishDevice(ticket, context)).toBe('pending');
  clock.advance(1);
  await expect(signIn.finishDevice(ticket, context)).rejects.toMatchObject({ reason: 'not_started' });
});
