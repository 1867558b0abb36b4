import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createSecret } from '../../src/keys/secrets/secret-format.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { startManagement, type TestManagement } from './start-management.ts';

const GUESSES = 3;

let management: TestManagement;
beforeEach(async () => {
  management = await startManagement({ guesses: GUESSES });
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
    management.clock.advance(60_000);
    await guess().expect(404);
  });
});
