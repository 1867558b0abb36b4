import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { AdminTokenService } from '../../src/admins/admin-token-service.ts';
import { rotateAdminTokens } from '../../src/admins/rotate-admin-tokens.ts';
import { ROOT } from '../../src/permissions/principal.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { idMaker } from '../../src/platform/id-maker.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { digestOfSecret } from '../../src/secrets/secret-digest.ts';
import { SecretVault } from '../../src/secrets/secret-vault.ts';
import { createPostgresRecords, type TestRecords } from '../support/records.ts';
import { sampleChange } from '../support/sample-records.ts';

let store: TestRecords;
beforeAll(async () => {
  store = await createPostgresRecords();
});
afterAll(() => store?.remove());

const [OLD_KEY, NEW_KEY] = [systemRandom.bytes(32), systemRandom.bytes(32)];
const change = () => sampleChange({ atMs: systemClock.nowMs() });

function serviceWith(keys: readonly Buffer[]): AdminTokenService {
  return new AdminTokenService({
    repository: store.records.adminTokens,
    vault: new SecretVault(keys, systemRandom),
    random: systemRandom,
    makeId: idMaker('adm_', systemClock, systemRandom),
  });
}

it('both secrets of a token that is rotated meanwhile are found under the new encryption key alone', async () => {
  const fields = {
    name: 't',
    scopes: ['keys:read'],
    onlyTags: [],
    allowedIps: [],
    expiresAtMs: null,
  } as const;
  const { token, secret } = await serviceWith([OLD_KEY]).create(fields, ROOT, change());
  const { sealedTokens, adminTokens } = store.records;
  let rotatedSecret: string | undefined;
  const report = await rotateAdminTokens(
    {
      after: (tokenId, limit) => sealedTokens.after(tokenId, limit),
      replace: async (present, by) => {
        if (rotatedSecret === undefined) {
          const terms = { graceMs: 3_600_000, principal: ROOT };
          ({ secret: rotatedSecret } = await serviceWith([NEW_KEY, OLD_KEY]).rotate(
            token.id,
            terms,
            change(),
          ));
        }
        await sealedTokens.replace(present, by);
      },
    },
    new SecretVault([NEW_KEY, OLD_KEY], systemRandom),
    () => {},
  );
  expect(report).toEqual({ rotated: 1, current: 0, unkept: 0 });
  const vault = new SecretVault([NEW_KEY], systemRandom);
  for (const each of [secret, rotatedSecret ?? ''])
    expect(
      await adminTokens.findByLookup(vault.digestLookups(digestOfSecret(each)), systemClock.nowMs()),
    ).toMatchObject({
      token: { id: token.id },
    });
});
