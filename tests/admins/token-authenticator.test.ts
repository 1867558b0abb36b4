import { describe, expect, it } from '@jest/globals';
import { TokenAuthenticator } from '../../src/admins/token-authenticator.ts';
import { createSecret } from '../../src/keys/secrets/secret-format.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { systemRandom } from '../../src/platform/random.ts';

/** An authenticator whose store has no token, and the secrets that it looked up, in their order. */
function withoutTokens() {
  const lookedUp: string[] = [];
  const authenticator = new TokenAuthenticator({
    repository: {
      findByLookup: async ([lookup]) => {
        lookedUp.push(String(lookup));
        return undefined;
      },
      noteUse: async () => {},
    },
    vault: { lookups: (secret) => [Buffer.from(secret)], digestLookups: () => [] },
    clock: systemClock,
    log: createLogger('silent'),
  });
  return { authenticator, lookedUp };
}

describe('looking up admin tokens', () => {
  it('lets clients take turns, and a client with too many guesses gets 503', async () => {
    const { authenticator, lookedUp } = withoutTokens();
    const guesses = Array.from({ length: 500 }, () =>
      authenticator.authenticate(createSecret('tga', systemRandom), '192.0.2.1'),
    );
    const token = createSecret('tga', systemRandom);
    await expect(authenticator.authenticate(token, '198.51.100.1')).resolves.toBeUndefined();
    // Four look-ups ran when it came, and then it took turns with one client.
    expect(lookedUp.indexOf(token)).toBeLessThan(6);
    const results = await Promise.allSettled(guesses);
    const rejected = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    expect(rejected).toHaveLength(500 - 260);
    expect(rejected[0]).toMatchObject({ code: 'overloaded' });
  });
});
