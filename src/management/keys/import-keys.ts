import { type FieldFault, ImportRejected, InvalidBody, PlanNotFound } from '../../errors.ts';
import { bodySchema } from '../../http/body-schema.ts';
import type { KeyToImport } from '../../keys/key-imports.ts';
import { logChangedKeys } from '../../keys/log-changed-keys.ts';
import type { ImportedSecret } from '../../keys/secrets/stored-secret.ts';
import type { Clock } from '../../platform/clock.ts';
import { bodyCheck } from '../body-check.ts';
import type { Endpoint } from '../endpoint.ts';
import { COUNT, listOf, named, objectOf, TEXT } from '../response-schemas.ts';
import { KEY_FIELDS, readFields, type WrittenKeyFields } from './key-fields.ts';
import { givenSecretIn, hashedSecretIn, SECRET, SECRET_HASH } from './secret-fields.ts';

const MAX_KEYS = 500;
const BODY_LIMIT_BYTES = 4 * 1024 * 1024;

interface WrittenKey extends WrittenKeyFields {
  readonly name: string;
  readonly secret?: string;
  readonly secretHash?: { readonly value: string };
}
interface ImportKeysBody {
  readonly keys: readonly WrittenKey[];
  readonly onConflict?: 'fail' | 'skip';
}
const IMPORT_KEYS_BODY = bodySchema(['keys'], {
  keys: {
    description: `must be a list of 1 to ${MAX_KEYS} keys`,
    type: 'array',
    minItems: 1,
    maxItems: MAX_KEYS,
    items: {
      description: 'must be an object with a name, and a secret or a secretHash',
      type: 'object',
      additionalProperties: false,
      required: ['name'],
      properties: { ...KEY_FIELDS, secret: SECRET, secretHash: SECRET_HASH },
    },
  },
  onConflict: {
    description: 'must be "fail" (all keys or none) or "skip" (all but those whose secret is taken)',
    type: 'string',
    enum: ['fail', 'skip'],
  },
});

const IMPORT_RESULT = named(
  'ImportResult',
  objectOf(
    { index: { ...COUNT, description: 'Of the key in the request.' } },
    {
      consumerApiKeyId: { ...TEXT, description: 'Missing where the key was not imported.' },
      code: { type: 'string', enum: ['secret_taken'], description: 'Why the key was not imported.' },
    },
  ),
);

/** Creates keys with secrets that exist already. */
export const importConsumerKeys: Endpoint<ImportKeysBody> = {
  method: 'post',
  path: '/api-keys/import',
  operationId: 'importConsumerKeys',
  summary: 'Import consumer API keys with their secrets, or with the SHA-256 digests of them',
  scope: 'keys:write',
  body: IMPORT_KEYS_BODY,
  bodyLimitBytes: BODY_LIMIT_BYTES,
  givenSecrets: ({ keys }) => keys.flatMap((key) => [...givenSecretIn(key), ...hashedSecretIn(key)]),
  status: 200,
  response: named('ImportedConsumerKeys', objectOf({ results: listOf(IMPORT_RESULT) })),
  errors: ['secret_taken', 'plan_not_found'],
  async handle({ body: { keys, onConflict = 'fail' }, change }, { imports, clock, log }) {
    const results = await imports.import(readKeys(keys, clock), onConflict, change);
    const keyIds = results.flatMap((result) =>
      'consumerApiKeyId' in result ? [result.consumerApiKeyId] : [],
    );
    const counts = { imported: keyIds.length, keys: keys.length };
    log.info({ event: 'keys_imported', ...counts }, 'consumer keys were imported');
    logChangedKeys(log, { action: 'import' }, keyIds);
    return { results };
  },
};

/**
 * The check of a request to import keys, for a dry run of the command: returns the fields for which the gateway rejects it. It knows
 * neither which plans exist nor which secrets are taken.
 */
export function createImportCheck(clock: Clock): (body: unknown) => readonly FieldFault[] {
  const check = bodyCheck(IMPORT_KEYS_BODY);
  return (body) => {
    try {
      check(body);
      readKeys((body as ImportKeysBody).keys, clock);
    } catch (error) {
      if (error instanceof InvalidBody) return error.faults;
      // Of a plan that can't exist.
      if (!(error instanceof ImportRejected)) throw error;
    }
    return [];
  };
}

/** Throws `InvalidBody` with the faults of all keys, or `ImportRejected` for plan ids that no plan can have. */
function readKeys(keys: readonly WrittenKey[], clock: Clock): readonly KeyToImport[] {
  const faults: FieldFault[] = [];
  const withoutPlan: number[] = [];
  const read = keys.flatMap((key, index): KeyToImport[] => {
    try {
      const fields = { name: key.name.trim(), ...readFields(key, clock) };
      return [{ fields, secret: readSecret(key) }];
    } catch (error) {
      if (error instanceof InvalidBody) faults.push(...error.under(`keys[${index}]`).faults);
      else if (error instanceof PlanNotFound) withoutPlan.push(index);
      else throw error;
      return [];
    }
  });
  if (faults.length > 0) throw new InvalidBody(faults);
  if (withoutPlan.length === 0) return read;
  throw new ImportRejected(
    'plan_not_found',
    withoutPlan.map((index) => ({ index, code: 'plan_not_found' })),
  );
}

function readSecret(key: WrittenKey): ImportedSecret {
  const [secret, ...others] = [...givenSecretIn(key), ...hashedSecretIn(key)];
  if (secret !== undefined && others.length === 0) return secret;
  throw new InvalidBody([{ field: 'secret', message: 'is required, or secretHash, but not both' }]);
}
