import { missingScope } from '../../admins/principal.ts';
import type { ConfigurationTerms } from '../../desired-state/desired-state-service.ts';
import {
  CONFLICT_REASONS,
  type Difference,
  type KeyStep,
  type PlanStep,
} from '../../desired-state/difference.ts';
import type { RevealedSecret } from '../../desired-state/new-managed-keys.ts';
import { InvalidBody, MissingScope } from '../../errors.ts';
import type { PathCase } from '../../paths/path-readings.ts';
import type { Endpoint, ResponseSchema } from '../endpoint.ts';
import { COUNT, listOf, named, objectOf, TEXT } from '../response-schemas.ts';
import {
  APPLY_BODY,
  type ApplyBody,
  CONFIGURATION_LIMIT_BYTES,
  DIFF_BODY,
  type DiffBody,
} from './configuration-schema.ts';
import { readConfiguration } from './read-configuration.ts';

const CHANGE = named('ConfigurationChange', {
  type: 'object',
  required: ['action', 'type', 'id', 'fields'],
  properties: {
    action: { type: 'string', enum: ['create', 'update', 'delete'] },
    type: { type: 'string', enum: ['plan', 'key'] },
    id: { ...TEXT, description: 'The rateLimitId or the externalId.' },
    consumerApiKeyId: { ...TEXT, description: 'Of a key that there is.' },
    fields: {
      type: 'object',
      description: 'What differs, as a configuration writes it; null: it is as in a new one.',
      additionalProperties: named('FieldChange', objectOf({ from: {}, to: {} })),
    },
    conflict: {
      type: 'string',
      enum: CONFLICT_REASONS,
      description: 'Why it is not done without force; ambiguous: several keys have the externalId.',
    },
  },
});
const DIFFERENCE: Readonly<Record<string, ResponseSchema>> = {
  changes: listOf(CHANGE),
  summary: named(
    'ConfigurationSummary',
    objectOf({ create: COUNT, update: COUNT, delete: COUNT, unchanged: COUNT }),
  ),
  digest: { ...TEXT, description: 'Of the changes, for expectDigest.' },
};

/** Shows what applying a configuration would change, without changing anything. */
export const diffConfiguration: Endpoint<DiffBody> = {
  method: 'post',
  path: '/tollgate/config/diff',
  operationId: 'diffConfiguration',
  summary: 'Show what applying a configuration would change',
  scope: 'config:write',
  body: DIFF_BODY,
  bodyLimitBytes: CONFIGURATION_LIMIT_BYTES,
  status: 200,
  response: named('ConfigurationDifference', objectOf(DIFFERENCE)),
  errors: ['pattern_not_canonical', 'plan_is_default'],
  async handle({ body, change }, { configurations, gateway }) {
    const { desired, terms } = readBody(body, gateway.pathCase);
    return presentDifference(await inConfig(configurations.diff(desired, terms, change)), new Map());
  },
};

/** Applies a configuration, all or nothing. */
export const applyConfiguration: Endpoint<ApplyBody> = {
  method: 'post',
  path: '/tollgate/config/apply',
  operationId: 'applyConfiguration',
  summary: 'Apply a configuration, all or nothing',
  scope: 'config:write',
  body: APPLY_BODY,
  bodyLimitBytes: CONFIGURATION_LIMIT_BYTES,
  status: 200,
  headers: ['Tollgate-Applies-Within'],
  response: named(
    'AppliedConfiguration',
    objectOf({
      ...DIFFERENCE,
      secrets: {
        ...listOf(named('NewSecret', objectOf({ externalId: TEXT, consumerApiKeyId: TEXT, secret: TEXT }))),
        description: 'Of the new keys without a secretHash, shown this once.',
      },
    }),
  ),
  errors: [
    'pattern_not_canonical',
    'managed_elsewhere',
    'digest_mismatch',
    'secret_taken',
    'plan_in_use',
    'plan_is_default',
  ],
  async handle({ body, change, principal }, { configurations, gateway, log }) {
    const { force = false, expectDigest } = body;
    // `force` takes records over from others, which the scope config:write alone does not allow.
    const missing = force ? missingScope(principal, ['keys:write', 'keys:delete', 'plans:write']) : undefined;
    if (missing !== undefined) throw new MissingScope(missing);
    const { desired, terms } = readBody(body, gateway.pathCase);
    const applied = await inConfig(configurations.apply(desired, { ...terms, force, expectDigest }, change));
    if (applied === undefined) throw new Error('A configuration of a request is always applied.');
    const { difference, newKeyIds, secrets } = applied;
    const shown = presentDifference(difference, newKeyIds);
    log.info(
      { event: 'configuration_applied', owner: terms.owner, ...shown.summary },
      'a configuration was applied',
    );
    return { ...shown, secrets: secrets.map(presentSecret) };
  },
};

function readBody({ config, owner, prune = false }: DiffBody, pathCase: PathCase) {
  const terms: ConfigurationTerms = { owner, prune };
  try {
    return { desired: readConfiguration(config, pathCase), terms };
  } catch (error) {
    throw error instanceof InvalidBody ? error.under('config') : error;
  }
}

/** Puts the paths of faults under `config`, as in the body. */
async function inConfig<Result>(work: Promise<Result>): Promise<Result> {
  return work.catch((error: unknown) => {
    throw error instanceof InvalidBody ? error.under('config') : error;
  });
}

function presentDifference(difference: Difference, newKeyIds: ReadonlyMap<string, string>) {
  const { plans, keys, unchanged, digest } = difference;
  const steps = [...plans, ...keys];
  const count = (wanted: string) => steps.filter(({ action }) => action === wanted).length;
  return {
    changes: [
      ...plans.map((step) => ({
        ...presentStep('plan', step),
        fields: step.fields,
        ...presentConflict(step),
      })),
      ...keys.map((step) => ({
        ...presentStep('key', step),
        ...presentKeyId(step.before?.key.id ?? newKeyIds.get(step.id)),
        fields: step.fields,
        ...presentConflict(step),
      })),
    ],
    summary: { create: count('create'), update: count('update'), delete: count('delete'), unchanged },
    digest,
  };
}

function presentStep(type: 'plan' | 'key', { action, id }: PlanStep | KeyStep) {
  return { action, type, id };
}

function presentKeyId(consumerApiKeyId: string | undefined) {
  return consumerApiKeyId === undefined ? {} : { consumerApiKeyId };
}

function presentConflict({ conflict }: PlanStep | KeyStep) {
  return conflict === undefined ? {} : { conflict };
}

function presentSecret({ externalId, keyId, secret }: RevealedSecret): object {
  return { externalId, consumerApiKeyId: keyId, secret };
}
