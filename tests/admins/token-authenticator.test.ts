import { describe, expect, it } from '@jest/globals';
import type { StoredAdminToken } from '../../src/admins/admin-token-repository.ts';
import { TokenAuthenticator } from '../../src/admins/token-authenticator.ts';
import { StoreUnavailable } from '../../src/errors.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { createSecret } from '../../src/secrets/secret-format.ts';

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

  it('asks the store for no text that can not be a secret', async () => {
    const { authenticator, lookedUp } = withoutTokens();
    for (const text of ['', 'x', `${createSecret('tga', systemRandom)}x`])
      expect(await authenticator.authenticate(text, '192.0.2.1')).toBeUndefined();
    expect(lookedUp).toEqual([]);
  });
});

describe('noting the use of an admin token', () => {
  function withToken(noteUse: () => Promise<void>) {
    const id = 'adm_1';
    const token = {
      ...{ id, name: 'ci', scopes: ['keys:read'] as const, onlyTags: [], allowedIps: null },
      ...{ expiresAtMs: null, lastUsedAtMs: null },
    };
    return new TokenAuthenticator({
      repository: {
        findByLookup: async ([lookup]) => ({ token, present: { lookup } }) as unknown as StoredAdminToken,
        noteUse,
      },
      vault: { lookups: (secret) => [Buffer.from(secret)], digestLookups: () => [] },
      clock: systemClock,
      log: createLogger('silent'),
    }).authenticate(createSecret('tga', systemRandom), '192.0.2.1');
  }

  it('rejects no request while the store can not be written', async () => {
    const principal = await withToken(() => Promise.reject(new StoreUnavailable('postgres', new Error())));
    expect(principal).toMatchObject({ type: 'token', id: 'adm_1' });
  });

  it('hides no other failure', async () => {
    await expect(withToken(() => Promise.reject(new Error('a defect')))).rejects.toThrow('a defect');
  });
});
