import { SecretVault } from '../../src/keys/secrets/secret-vault.ts';
import { systemRandom } from '../../src/platform/random.ts';

/** A vault with an encryption key that no gateway has. */
export const TEST_VAULT = new SecretVault([Buffer.alloc(32, 'audit')], systemRandom);
