import type { IncomingMessage } from 'node:http';
import { BlockList } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { TollgateError } from '../../src/errors.ts';
import { FailedCredentials } from '../../src/http/credentials/failed-credentials.ts';
import { createSecret } from '../../src/keys/secrets/secret-format.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startManagement, type TestManagement } from './start-management.ts';

/** What is left of the 1000 guesses that an address has. */
const GUESSES = 3;

let clock: ManualClock;
let management: TestManagement;
beforeEach(async () => {
  clock = new ManualClock(0);
  const failedCredentials = new FailedCredentials({ clock, trustedProxies: new BlockList() });
  const req = { socket: { remoteAddress: '127.0.0.1' }, headers: {} } as unknown as IncomingMessage;
  const failure = new TollgateError('invalid_api_key', 'The consumer API key is not valid.');
  for (let guesses = GUESSES; guesses < 1000; guesses += 1) failedCredentials.errorFor(req, failure);
  management = await startManagement({ failedCredentials });
});
afterEach(() => management.stop());

describe('guessing', () => {
  it('of admin tokens ends with 429, while a valid one works from the same address', async () => {
    const { secret } = await management.createToken();
    const guess = () => management.sendAs(createSecret('tga', systemRandom), 'get', '/tollgate/whoami');
    for (let guesses = 0; guesses < GUESSES; guesses += 1) await guess().expect(401);
    const { body, headers } = await guess().expect(429);
    expect([body.code, headers['retry-after']]).toEqual(['too_many_requests', '1']);
    await management.sendAs(secret, 'get', '/tollgate/whoami').expect(200);
  });

  it('of keys by find ends with 429, and begins again when the clock has moved on', async () => {
    const guess = () => {
      const secret = createSecret('tg', systemRandom);
      return management.send('post', '/api-keys/find', { secret });
    };
    for (let guesses = 0; guesses < GUESSES; guesses += 1) await guess().expect(404);
    expect((await guess().expect(429)).body.code).toBe('too_many_requests');
    clock.advance(60_000);
    await guess().expect(404);
  });
});
