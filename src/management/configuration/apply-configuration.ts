import type { DesiredState } from '../../desired-state/desired-state.ts';
import type { AppliedState, ConfigurationTerms } from '../../desired-state/desired-state-service.ts';
import {
  type AnyStep,
  CONFLICT_REASONS,
  type Difference,
  type WebhookStep,
} from '../../desired-state/difference.ts';
import { logConfiguredKeys } from '../../desired-state/log-configured-keys.ts';
import type { RevealedSecret } from '../../desired-state/new-managed-keys.ts';
import { InvalidBody, MissingScope } from '../../errors.ts';
import { scopesOf } from '../../events/event-patterns.ts';
import type { PathCase } from '../../paths/path-readings.ts';
import { missingScope, type Principal } from '../../permissions/principal.ts';
import type { Scope } from '../../permissions/scopes.ts';
import type { Endpoint, ResponseSchema } from '../endpoint.ts';
import { hashedSecretIn } from '../keys/secret-fields.ts';
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
    type: { type: 'string', enum: ['plan', 'key', 'webhook'] },
    id: { ...TEXT, description: 'The rateLimitId or the externalId.' },
    consumerApiKeyId: { ...TEXT, description: 'Of a key that there is.' },
    webhookId: { ...TEXT, description: 'Of a webhook that there is.' },
    fields: {
      type: 'object',
      description: 'What differs, as a configuration writes it; null: it is as in a new one.',
      additionalProperties: named('FieldChange', objectOf({ from: {}, to: {} })),
    },
    conflict: {
      type: 'string',
      enum: CONFLICT_REASONS,
      description: 'Why it is not done without force; ambiguous: several records have the externalId.',
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

const SECRETS = {
  ...listOf(named('NewSecret', objectOf({ externalId: TEXT, consumerApiKeyId: TEXT, secret: TEXT }))),
  description: 'Of the new keys without a secretHash, shown this once.',
};
const WEBHOOK_SECRETS = {
  ...listOf(named('NewWebhookSecret', objectOf({ externalId: TEXT, webhookId: TEXT, secret: TEXT }))),
  description: 'Of the new webhooks, shown this once; present if there are any.',
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
  errors: ['pattern_not_canonical', 'webhook_url_not_allowed'],
  async handle({ body, change, principal }, { configurations, gateway }) {
    const requireAllowed = webhookRule(principal, 'webhooks:read');
    const difference = await withConfiguration(body, gateway.pathCase, (desired, terms) =>
      configurations.diff(desired, { ...terms, requireAllowed }, change),
    );
    return presentDifference(difference, NO_IDS);
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
  givenSecrets: ({ config: { keys = [] } }) => keys.flatMap(hashedSecretIn),
  status: 200,
  headers: ['Tollgate-Applies-Within'],
  response: named(
    'AppliedConfiguration',
    objectOf({ ...DIFFERENCE, secrets: SECRETS }, { webhookSecrets: WEBHOOK_SECRETS }),
  ),
  errors: [
    'pattern_not_canonical',
    'managed_elsewhere',
    'digest_mismatch',
    'secret_taken',
    'plan_in_use',
    'webhook_url_not_allowed',
  ],
  async handle({ body, change, principal }, { configurations, gateway, log }) {
    const { owner, force = false, expectDigest } = body;
    // `force` takes records over from others, which the scope config:write alone does not allow.
    const missing = force ? missingScope(principal, ['keys:write', 'keys:delete', 'plans:write']) : undefined;
    if (missing !== undefined) throw new MissingScope(missing);
    const requireAllowed = webhookRule(principal, 'webhooks:write');
    const applied = await withConfiguration(body, gateway.pathCase, (desired, terms) =>
      configurations.apply(desired, { ...terms, requireAllowed, force, expectDigest }, change),
    );
    if (applied === undefined) throw new Error('A configuration of a request is always applied.');
    const { difference, secrets, webhookSecrets } = applied;
    const shown = presentDifference(difference, newIdsOf(applied));
    log.info({ event: 'configuration_applied', owner, ...shown.summary }, 'a configuration was applied');
    logConfiguredKeys(log, owner, applied);
    return {
      ...shown,
      secrets: secrets.map(presentSecret),
      ...(webhookSecrets.length > 0 && { webhookSecrets }),
    };
  },
};

/** Changes to webhooks need a scope of webhooks, and those of the events that they hear. */
function webhookRule(principal: Principal, scope: Scope) {
  return (steps: readonly WebhookStep[]): void => {
    if (steps.length === 0) return;
    const heard = steps.flatMap(({ before, wanted }) => [
      ...(before?.webhook.events ?? []),
      ...(wanted?.events ?? []),
    ]);
    const missing = missingScope(principal, [scope, ...scopesOf(heard)]);
    if (missing !== undefined) throw new MissingScope(missing);
  };
}

/** Does work with the configuration of a body. Puts the paths of faults under `config`, as in the body. */
async function withConfiguration<Result>(
  { config, owner, prune = false }: DiffBody,
  pathCase: PathCase,
  work: (desired: DesiredState, terms: ConfigurationTerms) => Promise<Result>,
): Promise<Result> {
  try {
    return await work(readConfiguration(config, pathCase), { owner, prune });
  } catch (error) {
    throw error instanceof InvalidBody ? error.under('config') : error;
  }
}

/** The ids of new keys and webhooks, by externalId. */
interface NewIds {
  readonly keys: ReadonlyMap<string, string>;
  readonly webhooks: ReadonlyMap<string, string>;
}

const NO_IDS: NewIds = { keys: new Map(), webhooks: new Map() };

function newIdsOf({ newKeyIds, webhookSecrets }: AppliedState): NewIds {
  const webhooks = new Map(webhookSecrets.map(({ externalId, webhookId }) => [externalId, webhookId]));
  return { keys: newKeyIds, webhooks };
}

function presentDifference(difference: Difference, newIds: NewIds) {
  const { plans, keys, webhooks, unchanged, digest } = difference;
  const steps = [...plans, ...keys, ...webhooks];
  const count = (wanted: string) => steps.filter(({ action }) => action === wanted).length;
  return {
    changes: [
      ...plans.map((step) => presentStep('plan', step, {})),
      ...keys.map((step) => {
        const consumerApiKeyId = step.before?.key.id ?? newIds.keys.get(step.id);
        return presentStep('key', step, { consumerApiKeyId });
      }),
      ...webhooks.map((step) => {
        const webhookId = step.before?.webhook.id ?? newIds.webhooks.get(step.id);
        return presentStep('webhook', step, { webhookId });
      }),
    ],
    summary: { create: count('create'), update: count('update'), delete: count('delete'), unchanged },
    digest,
  };
}

/** JSON leaves out what is undefined: the id of a record that is not there, and a conflict. */
function presentStep(
  type: 'plan' | 'key' | 'webhook',
  { action, id, fields, conflict }: AnyStep,
  recordId: Readonly<Partial<Record<'consumerApiKeyId' | 'webhookId', string | undefined>>>,
) {
  return { action, type, id, ...recordId, fields, conflict };
}

function presentSecret({ externalId, keyId, secret }: RevealedSecret): object {
  return { externalId, consumerApiKeyId: keyId, secret };
}
