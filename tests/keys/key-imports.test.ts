import { expect, it } from '@jest/globals';
import { keyIdMaker } from '../../src/keys/key-id.ts';
import { KeyImports } from '../../src/keys/key-imports.ts';
import type { SecretRepository } from '../../src/keys/secrets/secret-repository.ts';
import { SecretSealer } from '../../src/keys/secrets/stored-secret.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { SecretVault } from '../../src/secrets/secret-vault.ts';
import { sampleChange } from '../support/sample-records.ts';

it('An import of 500 keys lets other requests go on while it seals their secrets', async () => {
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  const secrets: Pick<SecretRepository, 'import'> = {
    import: async (keys) => {
      isOver = true;
      return keys.map(() => undefined);
    },
  };
  const vault = new SecretVault([Buffer.alloc(32, 1)], systemRandom);
  const imports = new KeyImports({
    secrets: secrets as SecretRepository,
    sealer: new SecretSealer({ vault, reveal: 'always' }),
    clock: systemClock,
    makeId: keyIdMaker(systemClock, systemRandom),
  });
  setImmediate(count);
  const keys = Array.from({ length: 500 }, (_, index) => ({
    fields: { name: 'n' },
    secret: { kind: 'given', secret: `secret-of-the-imported-key-${index}` } as const,
  }));
  await imports.import(keys, 'fail', sampleChange());
  expect(turns).toBeGreaterThanOrEqual(5);
});
