import { expect, it } from '@jest/globals';
import { createHandoverToken } from '../../src/keys/handovers/handover.ts';
import type { FoundHandover } from '../../src/keys/handovers/handover-repository.ts';
import { HANDOVER_LOOK_UPS, HandoverService } from '../../src/keys/handovers/handover-service.ts';
import { BoundedCache } from '../../src/platform/bounded-cache.ts';
import { ConcurrencyLimit } from '../../src/platform/concurrency/concurrency-limit.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { SecretVault } from '../../src/secrets/secret-vault.ts';
import { ManualClock } from '../support/manual-clock.ts';

const unused = () => Promise.reject(new Error('not used'));

function serviceOf(
  findByDigest: () => Promise<FoundHandover | undefined>,
  clock = new ManualClock(0),
): HandoverService {
  return new HandoverService({
    repository: {
      ...{ findByDigest, insert: unused, list: unused, count: unused, revoke: unused },
      ...{ use: unused, prune: unused },
    },
    vault: new SecretVault([Buffer.alloc(32, 7)], systemRandom),
    ...{ clock, random: systemRandom, makeId: () => 'hnd_1', reveal: 'always' },
    lookUps: new ConcurrencyLimit(HANDOVER_LOOK_UPS),
    reuses: new BoundedCache(10),
    pageUrl: () => undefined,
  });
}

it('A used link that is opened again and again has one log line an hour', () => {
  const clock = new ManualClock(0);
  const service = serviceOf(unused, clock);
  const link = (id: string) => ({
    ...{ id, keyId: 'key_1', note: null, createdAtMs: 0, expiresAtMs: 1, usedAtMs: 0, revokedAtMs: null },
  });
  const noted = (id: string) => service.noteReuse(link(id));
  expect([noted('hnd_1'), noted('hnd_1'), noted('hnd_2'), noted('hnd_1')]).toEqual([
    true,
    false,
    true,
    false,
  ]);
  clock.advance(3_599_999);
  expect(noted('hnd_1')).toBe(false);
  clock.advance(1);
  expect([noted('hnd_1'), noted('hnd_1')]).toEqual([true, false]);
});

it.each([
  ['One address', () => '192.0.2.1'],
  ['One IPv6 network of 64 bits', (index: number) => `2001:db8::${index.toString(16)}`],
])('%s with very many links to look up keeps no other address out', async (_what, addressAt) => {
  const isFree = Promise.withResolvers<void>();
  const findByDigest = async (): Promise<FoundHandover | undefined> => {
    await isFree.promise;
    return undefined;
  };
  const service = serviceOf(findByDigest);
  const token = createHandoverToken(systemRandom);
  const codeFor = (address: string) =>
    service.show(token, address).catch(({ code }: { readonly code: string }) => code);
  const flood = Array.from({ length: 2000 }, (_, index) => codeFor(addressAt(index)));
  const other = codeFor('192.0.2.2');
  isFree.resolve();
  expect(await other).toBe('handover_not_found');
  const rejected = (await Promise.all(flood)).filter((code) => code === 'overloaded');
  expect(rejected).toHaveLength(2000 - 4 - 64);
});
