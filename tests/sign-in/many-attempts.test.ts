import { expect, it } from '@jest/globals';
import { pino } from 'pino';
import { systemRandom } from '../../src/platform/random.ts';
import { SecretVault } from '../../src/secrets/secret-vault.ts';
import type { DeviceAuthorization } from '../../src/sign-in/identity-provider.ts';
import { SignIn } from '../../src/sign-in/sign-in.ts';
import { ManualClock } from '../support/manual-clock.ts';

const DEVICE: DeviceAuthorization = {
  ...{ deviceCode: 'x', userCode: 'A', verificationUri: 'https://login.example.com/device' },
  ...{ verificationUriComplete: null, expiresInS: 600, intervalS: 5 },
};
const unused = () => Promise.reject(new Error('not used'));

it.each([
  ['One address', () => '192.0.2.1'],
  ['One IPv6 network of 64 bits', (index: number) => `2001:db8::${index.toString(16)}`],
])('%s with very many attempts to sign in keeps no other address out', async (_what, addressAt) => {
  const asked: ((started: DeviceAuthorization) => void)[] = [];
  let isSlow = true;
  const startDevice = () =>
    isSlow
      ? new Promise<DeviceAuthorization>((resolve) => void asked.push(resolve))
      : Promise.resolve(DEVICE);
  const signIn = new SignIn({
    provider: { startDevice, authorizationUrl: unused, redeem: unused, redeemDevice: unused },
    sessions: { open: unused },
    vault: new SecretVault([Buffer.alloc(32, 7)], systemRandom),
    clock: new ManualClock(0),
    log: pino({ level: 'silent' }),
  });
  const begin = (address: string) => signIn.beginDevice({ requestId: 'r', address });
  const flood = Array.from({ length: 500 }, (_, index) => begin(addressAt(index)).catch(() => 'rejected'));
  const other = begin('192.0.2.2');
  // The first eight are at the provider. When two of them are done, it is the turn of the other address.
  for (const finish of asked.splice(0, 2)) finish(DEVICE);
  await Promise.all(flood.slice(0, 2));
  isSlow = false;
  for (const finish of asked.splice(0)) finish(DEVICE);
  expect(await other).toMatchObject({ device: { userCode: 'A' } });
  expect((await Promise.all(flood)).filter((result) => result === 'rejected')).toHaveLength(500 - 8 - 16);
});
