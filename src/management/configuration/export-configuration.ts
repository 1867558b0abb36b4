import { type Written, writtenAsLeft, writtenKey, writtenPlan } from '../../desired-state/written-state.ts';
import type { FieldSchema } from '../../http/body-schema.ts';
import type { ConsumerKey } from '../../keys/consumer-key.ts';
import { missingScope } from '../../permissions/principal.ts';
import { OWNER } from '../../plans/owner-name.ts';
import { yamlBlock, yamlEntries } from '../../platform/text/yaml-writer.ts';
import { type Endpoint, StreamedText } from '../endpoint.ts';
import { SHOWN_KEY_FIELDS } from '../keys/shown-key-fields.ts';
import { OPTIONAL_TERMS, TERMS } from '../plans/shown-plan.ts';
import { queryParameters } from '../query-parameters.ts';
import { listOf, named, objectOf, TEXT } from '../response-schemas.ts';
import { OWNER_RULE } from './configuration-schema.ts';

const EXPORT_QUERY = {
  owner: { description: OWNER_RULE, type: 'string', pattern: OWNER.source },
  format: { description: 'must be "json" or "yaml"', type: 'string', enum: ['json', 'yaml'] },
} as const satisfies Readonly<Record<string, FieldSchema>>;
const { readValid, readWord } = queryParameters(EXPORT_QUERY);

const { createdAt: _, ...CONFIGURED_TERMS } = TERMS;
const EXPORTED_PLAN = named('ExportedPlan', objectOf(CONFIGURED_TERMS, OPTIONAL_TERMS));
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
const EXPORTED_KEY = named(
  'ExportedKey',
  objectOf(
    { externalId: TEXT, name: TEXT },
    Object.fromEntries(EXPORTED_KEY_FIELDS.map((field) => [field, SHOWN_KEY_FIELDS[field]])),
  ),
);

const EXPORTED_WEBHOOK = named(
  'ExportedWebhook',
  objectOf(
    { externalId: TEXT, url: TEXT, events: listOf(TEXT) },
    { onlyTags: listOf(TEXT), description: TEXT, enabled: { type: 'boolean' }, batch: { type: 'boolean' } },
  ),
);

/** Exports the configuration that would change nothing if it were applied. */
export const exportConfiguration: Endpoint = {
  method: 'get',
  path: '/tollgate/config',
  operationId: 'exportConfiguration',
  summary: 'Export plans, keys and webhooks, without secrets, as a configuration',
  scope: ['keys:read', 'plans:read'],
  query: EXPORT_QUERY,
  status: 200,
  response: named('ExportedConfiguration', {
    type: 'object',
    required: ['plans', 'keys'],
    properties: {
      plans: listOf(EXPORTED_PLAN),
      webhooks: {
        ...listOf(EXPORTED_WEBHOOK),
        description: 'Without headers; present if there are any and the token has webhooks:read.',
      },
      keys: listOf(EXPORTED_KEY),
    },
  }),
  yaml: true,
  headers: ['Tollgate-Keys-Left-Out'],
  errors: [],
  async handle({ query, principal, prefers }, { configurations: { stored } }) {
    const owner = readValid(query, 'owner', (text) => OWNER.test(text));
    const format = readWord(query, 'format', ['json', 'yaml']);
    const isYaml = (format ?? prefers(['json', 'application/yaml'])?.replace('application/', '')) === 'yaml';
    const selection = { owner, onlyTags: principal.onlyTags };
    const plans = (await stored.exportPlans(owner)).map(writtenPlan);
    const isHeard = missingScope(principal, ['webhooks:read']) === undefined;
    const webhooks = isHeard ? await stored.exportWebhooks(selection) : [];
    const few = { plans, ...(webhooks.length > 0 && { webhooks: webhooks.map(writtenAsLeft) }) };
    const leftOut = await stored.countLeftOut(selection);
    const chunks = (isYaml ? yamlChunks : jsonChunks)(few, stored.exportKeys(selection));
    return new StreamedText(isYaml ? 'application/yaml' : 'application/json', chunks, {
      'Tollgate-Keys-Left-Out': String(leftOut),
    });
  },
};

async function* jsonChunks(
  few: Readonly<Record<string, readonly Written[]>>,
  keys: AsyncIterable<readonly ConsumerKey[]>,
): AsyncGenerator<string> {
  yield `${JSON.stringify(few).slice(0, -1)},"keys":[`;
  let separator = '\n';
  for await (const some of keys) {
    yield separator + some.map((key) => JSON.stringify(writtenKey(key))).join(',\n');
    separator = ',\n';
  }
  yield '\n]}\n';
}

async function* yamlChunks(
  few: Readonly<Record<string, readonly Written[]>>,
  keys: AsyncIterable<readonly ConsumerKey[]>,
): AsyncGenerator<string> {
  yield yamlBlock(few);
  let start = 'keys:\n';
  for await (const some of keys) {
    yield start + yamlEntries(some.map(writtenKey), 2);
    start = '';
  }
  if (start !== '') yield 'keys: []\n';
}
