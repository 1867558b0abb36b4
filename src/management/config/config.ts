import { missingScope } from '../../admins/principal.ts';
import { OWNER } from '../../desired-state/desired-state.ts';
import type { ConfigurationTerms, RevealedSecret } from '../../desired-state/desired-state-service.ts';
import type { ExportSelection } from '../../desired-state/desired-state-store.ts';
import {
  CONFLICT_REASONS,
  type Difference,
  type KeyStep,
  type PlanStep,
} from '../../desired-state/difference.ts';
import { type Written, writtenKey, writtenPlan } from '../../desired-state/written-state.ts';
import { InvalidBody, MissingScope } from '../../errors.ts';
import type { FieldSchema } from '../../http/body-schema.ts';
import { endpoint, type ManagementServices, type ResponseSchema, StreamedText } from '../endpoint.ts';
import { SHOWN_KEY_FIELDS } from '../keys/key-fields.ts';
import { OPTIONAL_TERMS, TERMS } from '../plans/rate-limits.ts';
import { queryParameters } from '../query-parameters.ts';
import { COUNT, listOf, named, objectOf, TEXT } from '../response-schemas.ts';
import {
  APPLY_BODY,
  type ApplyBody,
  CONFIGURATION_LIMIT_BYTES,
  DIFF_BODY,
  type DiffBody,
  OWNER_RULE,
} from './configuration-schema.ts';
import { readConfiguration } from './read-configuration.ts';

const EXPORT_QUERY = {
  owner: { description: OWNER_RULE, type: 'string', pattern: OWNER.source },
  format: { description: 'must be "json" or "yaml"', type: 'string', enum: ['json', 'yaml'] },
} as const satisfies Readonly<Record<string, FieldSchema>>;
const { readText, readWord, invalid } = queryParameters(EXPORT_QUERY);

const { createdAt: _, ...CONFIGURED_TERMS } = TERMS;
const EXPORTED_PLAN = named('ExportedPlan', {
  type: 'object',
  required: Object.keys(CONFIGURED_TERMS),
  properties: { ...CONFIGURED_TERMS, ...OPTIONAL_TERMS },
});
const EXPORTED_KEY_FIELDS = [
  'rateLimitId',
  'enabled',
  'expiresAt',
  'tags',
  'metadata',
  'overrides',
  'allowedIps',
  'allowedOrigins',
  'selfService',
] as const;
const EXPORTED_KEY = named('ExportedKey', {
  type: 'object',
  required: ['externalId', 'name'],
  properties: {
    externalId: TEXT,
    name: TEXT,
    ...Object.fromEntries(EXPORTED_KEY_FIELDS.map((field) => [field, SHOWN_KEY_FIELDS[field]])),
  },
});

/** Shows what a configuration would have to say for everything to be as it is. */
export const exportConfiguration = endpoint({
  method: 'get',
  path: '/tollgate/config',
  operationId: 'exportConfiguration',
  summary: 'Export plans and keys, without secrets, as a configuration',
  scope: ['keys:read', 'plans:read'],
  query: EXPORT_QUERY,
  status: 200,
  response: named(
    'ExportedConfiguration',
    objectOf({ plans: listOf(EXPORTED_PLAN), keys: listOf(EXPORTED_KEY) }),
  ),
  yaml: true,
  headers: ['Tollgate-Keys-Left-Out'],
  errors: [],
  async handle({ query, principal, prefers }, { configurations }) {
    const owner = readText(query, 'owner');
    if (owner !== undefined && !OWNER.test(owner)) throw invalid('owner');
    const format = readWord(query, 'format', ['json', 'yaml']);
    const isYaml = (format ?? prefers(['json', 'application/yaml'])?.replace('application/', '')) === 'yaml';
    const selection = { owner, onlyTags: principal.onlyTags };
    const plans = (await configurations.exportPlans(owner)).map(writtenPlan);
    const leftOut = await configurations.countLeftOut(selection);
    const chunks = (isYaml ? yamlChunks : jsonChunks)(plans, keysOf(configurations, selection));
    return new StreamedText(isYaml ? 'application/yaml' : 'application/json', chunks, {
      'Tollgate-Keys-Left-Out': String(leftOut),
    });
  },
});

/** Keys that are written together: the text of more takes the time of many requests. */
const WRITTEN_AT_ONCE = 100;

async function* keysOf(
  configurations: ManagementServices['configurations'],
  selection: ExportSelection,
): AsyncGenerator<readonly Written[]> {
  for await (const keys of configurations.exportKeys(selection)) {
    for (let start = 0; start < keys.length; start += WRITTEN_AT_ONCE)
      yield keys.slice(start, start + WRITTEN_AT_ONCE).map(writtenKey);
  }
}

async function* jsonChunks(
  plans: readonly Written[],
  keys: AsyncIterable<readonly Written[]>,
): AsyncGenerator<string> {
  yield `{"plans":${JSON.stringify(plans)},"keys":[`;
  let separator = '';
  for await (const some of keys) {
    yield separator + some.map((key) => JSON.stringify(key)).join(',');
    separator = ',';
  }
  yield ']}';
}

async function* yamlChunks(
  plans: readonly Written[],
  keys: AsyncIterable<readonly Written[]>,
): AsyncGenerator<string> {
  // The library takes 25 ms to load, and only this format needs it.
  const { stringify } = await import('yaml');
  const yamlOf = (value: object) => stringify(value, { lineWidth: 0, aliasDuplicateObjects: false });
  yield yamlOf({ plans });
  let hasKeys = false;
  for await (const some of keys) {
    const text = yamlOf({ keys: some });
    // One list, of which each part is written like a list of its own.
    yield hasKeys ? text.slice(text.indexOf('\n') + 1) : text;
    hasKeys = true;
  }
  if (!hasKeys) yield yamlOf({ keys: [] });
}

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

/** Shows what applying a configuration would do, and does nothing. */
export const diffConfiguration = endpoint<DiffBody>({
  method: 'post',
  path: '/tollgate/config/diff',
  operationId: 'diffConfiguration',
  summary: 'Show what applying a configuration would change',
  scope: 'config:write',
  body: DIFF_BODY,
  bodyLimitBytes: CONFIGURATION_LIMIT_BYTES,
  status: 200,
  response: named('ConfigurationDifference', objectOf(DIFFERENCE)),
  errors: ['plan_is_default'],
  async handle({ body, change }, { configurations }) {
    const { desired, terms } = readBody(body);
    return presentDifference(await inConfig(configurations.diff(desired, terms, change)), new Map());
  },
});

/** Applies a configuration, all of it or nothing. */
export const applyConfiguration = endpoint<ApplyBody>({
  method: 'post',
  path: '/tollgate/config/apply',
  operationId: 'applyConfiguration',
  summary: 'Apply a configuration, all or nothing',
  scope: 'config:write',
  body: APPLY_BODY,
  bodyLimitBytes: CONFIGURATION_LIMIT_BYTES,
  status: 200,
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
  errors: ['managed_elsewhere', 'digest_mismatch', 'secret_taken', 'plan_in_use', 'plan_is_default'],
  async handle({ body, change, principal }, { configurations, log }) {
    const { force = false, expectDigest } = body;
    // Who may only apply configurations changes nothing that others have made.
    const missing = force ? missingScope(principal, ['keys:write', 'keys:delete', 'plans:write']) : undefined;
    if (missing !== undefined) throw new MissingScope(missing);
    const { desired, terms } = readBody(body);
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
});

function readBody({ config, owner, prune = false }: DiffBody) {
  const terms: ConfigurationTerms = { owner, prune };
  try {
    return { desired: readConfiguration(config), terms };
  } catch (error) {
    throw error instanceof InvalidBody ? error.under('config') : error;
  }
}

/** Faults of the configuration by their paths in the body. */
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
