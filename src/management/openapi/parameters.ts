import type { FieldSchema } from '../../http/body-schema.ts';
import { PLAN_ID } from '../../plans/plan-id.ts';
import type { Endpoint } from '../endpoint.ts';
import type { SchemaComponents } from './schema-components.ts';

/** `*`, or a list of entity tags. */
const TAGS = '^(?:\\*|(?:W/)?"[!#-~]*"(?:, ?(?:W/)?"[!#-~]*")*)$';

function anyId(name: string) {
  return { name, in: 'path', required: true, schema: { type: 'string', minLength: 1 } };
}

/** Parameters of paths and request headers, by the name of their component. */
export const PARAMETERS = {
  consumerApiKeyId: {
    name: 'consumerApiKeyId',
    in: 'path',
    required: true,
    schema: { type: 'string', pattern: '^key_[0-9A-HJKMNP-TV-Z]{26}$' },
    example: 'key_01KGH3V6ZQ5T8M2N4P6R8S0T2V',
  },
  rateLimitId: {
    name: 'rateLimitId',
    in: 'path',
    required: true,
    schema: { type: 'string', pattern: PLAN_ID.source },
    example: 'gold',
  },
  adminTokenId: anyId('adminTokenId'),
  webhookId: anyId('webhookId'),
  deliveryId: anyId('deliveryId'),
  handoverId: anyId('handoverId'),
  sessionId: {
    name: 'sessionId',
    in: 'path',
    required: true,
    description: 'The id of a session, or `current`.',
    schema: { type: 'string', minLength: 1 },
  },
  jobId: anyId('jobId'),
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    description: 'Sent again with the same key within 24 hours, the request is performed once.',
    schema: { type: 'string', pattern: '^[\\x21-\\x7e]{1,255}$' },
    example: '8e03978e-40d5-43dd-bc93-6894a57f9324',
  },
  IfMatch: {
    name: 'If-Match',
    in: 'header',
    description: 'Changes the record only in one of these states: * or a list of ETags.',
    schema: { type: 'string', pattern: TAGS },
    example: '"ml62s3tx-1"',
  },
  IfNoneMatch: {
    name: 'If-None-Match',
    in: 'header',
    description: 'Changes the record only if it is in none of these states; * where it must not exist.',
    schema: { type: 'string', pattern: TAGS },
    example: '*',
  },
  LastEventId: {
    name: 'Last-Event-ID',
    in: 'header',
    description: 'The id of the last message: the stream goes on after it. Ignored where it is no such id.',
    schema: { type: 'string' },
    example: '4711',
  },
  AuditReason: {
    name: 'X-Audit-Reason',
    in: 'header',
    description: 'Kept in the audit log.',
    schema: { type: 'string', maxLength: 256 },
    example: 'asked for by phone',
  },
} as const;

/** The parameters of an operation. */
export function parametersOf(endpoint: Endpoint, schemas: SchemaComponents): readonly object[] {
  const { method, path, query = {}, conditional, eventStream, forHolders } = endpoint;
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const inHeader = [
    ...(method === 'post' && !forHolders ? ['IdempotencyKey'] : []),
    ...(conditional ? ['IfMatch', 'IfNoneMatch'] : []),
    ...(eventStream ? ['LastEventId'] : []),
    ...(method === 'get' || forHolders ? [] : ['AuditReason']),
  ];
  return [
    ...inPath.map(referenceTo),
    ...Object.entries(query).map(([name, schema]) => queryParameter(name, schema, schemas)),
    ...inHeader.map(referenceTo),
  ];
}

function queryParameter(
  name: string,
  { description, ...schema }: FieldSchema,
  schemas: SchemaComponents,
): object {
  return { name, in: 'query', description, schema: schemas.place(schema, name) };
}

/** Throws if the document has no such parameter. */
function referenceTo(name: string): object {
  if (!(name in PARAMETERS))
    throw new Error(`The parameter ${name} has no description for the OpenAPI document.`);
  return { $ref: `#/components/parameters/${name}` };
}
