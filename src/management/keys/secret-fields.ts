import { ADMIN_TOKEN_PREFIX } from '../../admins/admin-token.ts';
import type { FieldSchema } from '../../http/body-schema.ts';
import type { ImportedSecret } from '../../keys/secrets/stored-secret.ts';
import { digestOfText, SECRET_DIGEST } from '../../secrets/secret-digest.ts';
import { GIVEN_SECRET, MAX_SECRET_LENGTH, MIN_SECRET_LENGTH } from '../../secrets/secret-format.ts';

/** A secret that the client chooses. */
export const SECRET = {
  description: `must be a secret of ${MIN_SECRET_LENGTH} to ${MAX_SECRET_LENGTH} letters, digits and - . _ ~ + /, with = at its end only, that does not begin with ${ADMIN_TOKEN_PREFIX}_`,
  type: 'string',
  minLength: MIN_SECRET_LENGTH,
  maxLength: MAX_SECRET_LENGTH,
  // A secret with the prefix of admin tokens would be taken for one.
  pattern: `^(?!${ADMIN_TOKEN_PREFIX}_)${GIVEN_SECRET.source.slice(1)}`,
} as const satisfies FieldSchema;

/** A secret that a consumer presented: any text that could be one. */
export const PRESENTED_SECRET = {
  description: `must be a string of 1 to ${MAX_SECRET_LENGTH} characters`,
  type: 'string',
  minLength: 1,
  maxLength: MAX_SECRET_LENGTH,
} as const satisfies FieldSchema;

/** The digest of a secret, as other systems store it. */
export const SECRET_HASH = {
  description: 'must be an object with the algorithm "sha256" and the value, the digest of the secret',
  type: 'object',
  additionalProperties: false,
  required: ['algorithm', 'value'],
  properties: {
    algorithm: { description: 'must be "sha256"', type: 'string', enum: ['sha256'] },
    value: {
      description: 'must be a SHA-256 digest: 64 hexadecimal digits, or base64 or base64url of 32 bytes',
      type: 'string',
      pattern: SECRET_DIGEST.source,
    },
  },
} as const satisfies FieldSchema;

/** The secret of a body that may have one. */
export function givenSecretIn({ secret }: { readonly secret?: string }): readonly ImportedSecret[] {
  return secret === undefined ? [] : [{ kind: 'given', secret }];
}

/** The secret of whose digest a body may have. */
export function hashedSecretIn({
  secretHash,
}: {
  readonly secretHash?: { readonly value: string };
}): readonly ImportedSecret[] {
  return secretHash === undefined ? [] : [{ kind: 'hashed', digest: digestOfText(secretHash.value) }];
}
