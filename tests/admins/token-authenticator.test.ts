import { describe, expect, it } from '@jest/globals';
import type { AdminToken } from '../../src/admins/admin-token.ts';
import type { StoredAdminToken } from '../../src/admins/admin-token-repository.ts';
import { TokenAuthenticator } from '../../src/admins/token-authenticator.ts';
import { StoreUnavailable } from '../../src/errors.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { createSecret } from '../../src/secrets/secret-format.ts';
import { ManualClock } from '../support/manual-clock.ts';

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

describe('an admin token', () => {
  const PRESENT = createSecret('tga', systemRandom);
  const ENDS_AT_MS = 1_000_000;

  /** The principal of a request with a secret of the token, whose present one is `PRESENT`. */
  function authenticate({
    secret = PRESENT,
    noteUse = async () => {},
    nowMs = 0,
    ...ends
  }: Partial<Pick<AdminToken, 'expiresAtMs' | 'previousValidUntilMs'>> & {
    readonly secret?: string;
    readonly noteUse?: () => Promise<void>;
    readonly nowMs?: number;
  }) {
    const token = {
      ...{ id: 'adm_1', name: 'ci', scopes: ['keys:read'] as const, onlyTags: [], allowedIps: null },
      ...{ expiresAtMs: null, previousValidUntilMs: null, lastUsedAtMs: null, ...ends },
    };
    const found = { token, present: { lookup: Buffer.from(PRESENT) } } as unknown as StoredAdminToken;
    return new TokenAuthenticator({
      repository: { findByLookup: async () => found, noteUse },
      vault: { lookups: (presented) => [Buffer.from(presented)], digestLookups: () => [] },
      clock: new ManualClock(nowMs),
      log: createLogger('silent'),
    }).authenticate(secret, '192.0.2.1');
  }

  it('rejects no request while its use can not be noted', async () => {
    const noteUse = () => Promise.reject(new StoreUnavailable('postgres', new Error()));
    expect(await authenticate({ noteUse })).toMatchObject({ type: 'token', id: 'adm_1' });
  });

  it('hides no other failure', async () => {
    const noteUse = () => Promise.reject(new Error('a defect'));
    await expect(authenticate({ noteUse })).rejects.toThrow('a defect');
  });

  it('is valid until the instant at which it expires', async () => {
    const expiresAtMs = ENDS_AT_MS;
    expect(await authenticate({ expiresAtMs, nowMs: ENDS_AT_MS - 1 })).toMatchObject({ expiresAtMs });
    expect(await authenticate({ expiresAtMs, nowMs: ENDS_AT_MS })).toBeUndefined();
  });

  it('ends with its earlier secret only where that one is presented', async () => {
    const rotated = { previousValidUntilMs: ENDS_AT_MS };
    expect(await authenticate(rotated)).toMatchObject({ expiresAtMs: null });
    const secret = createSecret('tga', systemRandom);
    expect(await authenticate({ ...rotated, secret })).toMatchObject({ expiresAtMs: ENDS_AT_MS });
  });
});
