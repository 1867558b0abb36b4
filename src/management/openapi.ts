import { requiredScopes } from '../admins/principal.ts';
import type { ErrorCode } from '../errors.ts';
import { TollgateError } from '../errors.ts';
import { errorResponse } from '../http/error-responses.ts';
import type { Endpoint } from './endpoint.ts';
import { ENDPOINTS } from './endpoints.ts';

/** The OpenAPI 3.1 document of the management interface, made from the same schemas that check the bodies. */
export function openApiDocument(): object {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tollgate management interface',
      version: '1',
      description:
        'Consumer API keys, rate limit plans and usage. Unknown fields of a body and unknown query parameters are errors. ' +
        'Every response carries "Cache-Control: no-store".',
    },
    servers: [{ url: '/' }],
    paths: Object.fromEntries(
      [...Map.groupBy(ENDPOINTS, ({ path }) => path)].map(([path, endpoints]) => [path, pathItem(endpoints)]),
    ),
    components: {
      securitySchemes: {
        rootToken: { type: 'http', scheme: 'bearer', description: 'The root token, which has all scopes.' },
        adminToken: {
          type: 'http',
          scheme: 'bearer',
          description: 'An admin token with the scopes that the operation names.',
        },
      },
      schemas: { Error: ERROR_BODY },
    },
  };
}

/** Codes that any endpoint may respond. */
const COMMON_ERRORS: readonly ErrorCode[] = [
  'bad_request',
  'invalid_parameter',
  'missing_root_token',
  'invalid_root_token',
  'missing_scope',
  'too_many_requests',
  'internal_error',
  'store_unavailable',
];

/** Codes that an endpoint with a body may respond. */
const BODY_ERRORS: readonly ErrorCode[] = [
  'malformed_json',
  'invalid_body',
  'body_too_large',
  'unsupported_media_type',
];

const ERROR_BODY = {
  type: 'object',
  required: ['error', 'code'],
  properties: {
    error: { type: 'string', description: 'A sentence for a person.' },
    code: { type: 'string', description: 'Stable, for programs.' },
    errors: {
      type: 'array',
      description: 'Each field of the body that breaks its rule; only with the code invalid_body.',
      items: {
        type: 'object',
        required: ['field', 'message'],
        properties: { field: { type: 'string' }, message: { type: 'string' } },
      },
    },
  },
};

function pathItem(endpoints: readonly Endpoint[]): object {
  return Object.fromEntries(endpoints.map((endpoint) => [endpoint.method, operation(endpoint)]));
}

function operation(endpoint: Endpoint): object {
  const { operationId, summary, scope, body, status, mayCreate, response, csv } = endpoint;
  const parameters = parametersOf(endpoint);
  return {
    operationId,
    summary,
    security: [{ rootToken: [] }, { adminToken: requiredScopes(scope) }],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: { required: true, content: json(body) } }),
    responses: {
      [status]: { description: 'Done.', content: { ...json(response), ...(csv && CSV) } },
      ...(mayCreate === true ? { 201: { description: 'Made.', content: json(response) } } : {}),
      ...errorResponses(endpoint),
    },
  };
}

function parametersOf({ path, query = {} }: Endpoint): readonly object[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const inQuery = Object.entries(query).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    description,
    schema,
  }));
  return [...inPath, ...inQuery];
}

/** One response for each status, with the codes that share it. */
function errorResponses({ body, conditional, errors }: Endpoint): object {
  const codes = [
    ...COMMON_ERRORS,
    ...(body === undefined ? [] : BODY_ERRORS),
    ...(conditional ? (['version_mismatch'] as const) : []),
    ...errors,
  ];
  const byStatus = Map.groupBy(codes, (code) => errorResponse(new TollgateError(code, '')).status);
  return Object.fromEntries(
    [...byStatus].map(([status, group]) => [
      status,
      { description: group.join(', '), content: json({ $ref: '#/components/schemas/Error' }) },
    ]),
  );
}

/** Its columns are the fields of a row. */
const CSV = { 'text/csv': { schema: { type: 'string' } } };

function json(schema: object): object {
  return { 'application/json': { schema } };
}
