import { requiredScopes } from '../../permissions/principal.ts';
import type { Endpoint } from '../endpoint.ts';
import { BODY_EXAMPLES } from './body-examples.ts';
import { ErrorResponses } from './documented-errors.ts';
import { eventWebhooks } from './event-webhooks.ts';
import { HEADERS, type HeaderName, headersOf } from './headers.ts';
import { PARAMETERS, parametersOf } from './parameters.ts';
import { RESPONSE_EXAMPLES } from './response-examples.ts';
import { capitalized, SchemaComponents } from './schema-components.ts';

const DESCRIPTION = [
  'Consumer API keys, rate limit plans, usage, admin tokens and the audit log.',
  'Unknown fields of a body and unknown query parameters are errors.',
  'Every response carries "Cache-Control: no-store"; errors are problem details (RFC 9457) with "Accept: application/problem+json".',
].join(' ');

/** The OpenAPI 3.1 document of the management interface, made from the same schemas that check the bodies. */
export function openApiDocument(endpoints: readonly Endpoint[]): object {
  const schemas = new SchemaComponents();
  const errors = new ErrorResponses(schemas);
  const paths = [...Map.groupBy(endpoints, ({ path }) => path)].map(([path, operations]) => [
    path,
    Object.fromEntries(
      operations.map((endpoint) => [endpoint.method, operationOf(endpoint, { schemas, errors })]),
    ),
  ]);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tollgate management interface',
      version: '1',
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: TAGS,
    paths: Object.fromEntries(paths),
    webhooks: eventWebhooks(schemas),
    components: {
      securitySchemes: SECURITY_SCHEMES,
      parameters: PARAMETERS,
      headers: HEADERS,
      responses: errors.all(),
      schemas: schemas.all(),
    },
  };
}

const SECURITY_SCHEMES = {
  rootToken: { type: 'http', scheme: 'bearer', description: 'The root token, which has all scopes.' },
  adminToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'An admin token with the scopes that the operation names.',
  },
  consumerKey: { type: 'http', scheme: 'bearer', description: 'The secret of a consumer API key.' },
};

const TAGS = [
  { name: 'keys', description: 'Consumer API keys and their live counters.' },
  { name: 'plans', description: 'Rate limit plans.' },
  { name: 'usage', description: 'Requests over time.' },
  { name: 'self-service', description: 'What consumers may know of the key that they present.' },
  { name: 'events', description: 'Webhooks, the stream, and the events that they carry.' },
  { name: 'administration', description: 'Admin tokens, the audit log, and the gateway itself.' },
];

/** The tag of an operation, derived from its path. */
function tagOf({ path, forConsumers, forHolders }: Endpoint): string {
  if (forConsumers || forHolders) return 'self-service';
  if (path.endsWith('/usage')) return 'usage';
  if (/^\/tollgate\/(webhook|events)\b/.test(path)) return 'events';
  if (path.startsWith('/tollgate')) return 'administration';
  return path.startsWith('/rate-limit') ? 'plans' : 'keys';
}

interface Components {
  readonly schemas: SchemaComponents;
  readonly errors: ErrorResponses;
}

function operationOf(endpoint: Endpoint, { schemas, errors }: Components): object {
  const { operationId, summary, body } = endpoint;
  const parameters = parametersOf(endpoint, schemas);
  const name = capitalized(operationId);
  const content = body && {
    'application/json': {
      schema: schemas.place({ ...body }, `${name}Request`),
      ...(operationId in BODY_EXAMPLES && { example: BODY_EXAMPLES[operationId] }),
    },
  };
  return {
    operationId,
    summary,
    tags: [tagOf(endpoint)],
    security: securityOf(endpoint),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(content === undefined ? {} : { requestBody: { required: true, content } }),
    responses: { ...successesOf(endpoint, schemas), ...errors.of(endpoint) },
  };
}

/** Empty: no credential is needed. */
function securityOf({ scope, forConsumers, forHolders }: Endpoint): readonly object[] {
  if (forHolders) return [];
  return forConsumers ? [{ consumerKey: [] }] : [{ rootToken: [] }, { adminToken: requiredScopes(scope) }];
}

function successesOf(endpoint: Endpoint, schemas: SchemaComponents): object {
  const { operationId, method, forHolders, status, mayCreate, tagged, csv, yaml, response } = endpoint;
  const schema = schemas.place(response, `${capitalized(operationId)}Response`);
  const example = RESPONSE_EXAMPLES[operationId];
  const content = endpoint.eventStream
    ? { 'text/event-stream': { schema } }
    : {
        'application/json': { schema, ...(example && { example }) },
        ...(csv && CSV),
        ...(yaml && { 'application/yaml': { schema } }),
      };
  const headers: readonly HeaderName[] = [
    'X-Request-Id',
    ...(tagged ? (['ETag'] as const) : []),
    ...(method === 'post' && !forHolders ? (['Idempotency-Replayed'] as const) : []),
    ...(csv || yaml ? (['Vary'] as const) : []),
    ...(endpoint.headers ?? []),
  ];
  const done = { description: 'Done.', headers: headersOf(headers), content };
  const made = { description: 'Made.', headers: headersOf(['Location', ...headers]), content };
  if (status === 201) return { 201: made };
  return mayCreate ? { 200: done, 201: made } : { 200: done };
}

/** The columns of the CSV are the fields of a row. */
const CSV = { 'text/csv': { schema: { type: 'string' } } };
