import { systemRandom } from '../../src/platform/random.ts';
import { SecretVault } from '../../src/secrets/secret-vault.ts';

/** A vault with an encryption key that no gateway has. */
export const TEST_VAULT = new SecretVault([Buffer.alloc(32, 'audit')], systemRandom);
