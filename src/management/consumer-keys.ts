import { InvalidBody } from '../errors.ts';
import type { BodySchema, FieldSchema } from '../http/body-schema.ts';
import { isoSeconds, parseIsoUtc, sqlSeconds } from '../http/timestamps.ts';
import type { ConsumerKey } from '../keys/consumer-key.ts';
import type { KeyChanges } from '../keys/key-repository.ts';
import type { Clock } from '../platform/clock.ts';
import { INSTANT, listOf, objectOf, orNull, TEXT } from './answer-schemas.ts';
import { endpoint } from './endpoint.ts';
import { PAGE_QUERY, readPage } from './page-query.ts';

const NAME: FieldSchema = {
  description:
    'must be a string of 1 to 255 characters without control characters, not counting blanks around it',
  type: 'string',
  format: 'key-name',
};
const ENABLED: FieldSchema = { description: 'must be true or false', type: 'boolean' };
const EXPIRES_AT: FieldSchema = {
  description:
    'must be an instant in the future as YYYY-MM-DDThh:mm:ssZ (UTC), or null for a key that never expires',
  type: ['string', 'null'],
  format: 'utc-instant',
};

interface CreateKeyBody {
  readonly name: string;
  readonly expiresAt?: string | null;
}
const CREATE_KEY_BODY: BodySchema = {
  type: 'object',
  required: ['name'],
  properties: { name: NAME, expiresAt: EXPIRES_AT },
};

/** Makes a key. Its secret is in the answer. */
export const createConsumerKey = endpoint<CreateKeyBody>({
  method: 'post',
  path: '/consumer-api-key/create',
  operationId: 'createConsumerKey',
  summary: 'Create a consumer API key',
  body: CREATE_KEY_BODY,
  status: 201,
  answer: objectOf({
    id: TEXT,
    name: TEXT,
    secret: TEXT,
    createdAt: { type: 'string', description: 'UTC', examples: ['2026-02-03 04:05:06'] },
  }),
  errors: [],
  async handle({ body }, { keys, clock, log }) {
    const expiresAtMs = readExpiry(body.expiresAt, clock);
    const created = await keys.create({
      name: body.name.trim(),
      ...(typeof expiresAtMs === 'number' ? { expiresAtMs } : {}),
    });
    log.info({ event: 'key_created', keyId: created.key.id }, 'a consumer key was created');
    const { id, name, createdAtMs } = created.key;
    return { id, name, secret: created.secret, createdAt: sqlSeconds(createdAtMs) };
  },
});

const LIST_ITEM = { consumerApiKeyId: TEXT, name: TEXT, createdAt: INSTANT, lastUpdated: INSTANT };

/** Lists the keys, newest first, without their secrets. */
export const listConsumerKeys = endpoint({
  method: 'get',
  path: '/consumer-api-key',
  operationId: 'listConsumerKeys',
  summary: 'List consumer API keys, newest first',
  query: PAGE_QUERY,
  status: 200,
  answer: {
    type: 'object',
    required: ['apiKeys'],
    properties: {
      apiKeys: listOf(objectOf(LIST_ITEM)),
      nextCursor: { type: 'string', description: 'Present only when there are more keys.' },
    },
  },
  errors: ['invalid_parameter'],
  async handle({ query }, { keys }) {
    const page = await keys.list(readPage(query));
    const next = page.nextCursor === undefined ? {} : { nextCursor: page.nextCursor };
    return { apiKeys: page.keys.map(presentListItem), ...next };
  },
});

interface UpdateKeyBody {
  readonly name?: string;
  readonly enabled?: boolean;
  readonly expiresAt?: string | null;
}
const UPDATE_KEY_BODY: BodySchema = {
  type: 'object',
  required: [],
  properties: { name: NAME, enabled: ENABLED, expiresAt: EXPIRES_AT },
};

/** Changes a key's name, switches it off or on, or sets when it expires. */
export const updateConsumerKey = endpoint<UpdateKeyBody>({
  method: 'patch',
  path: '/consumer-api-key/{consumerApiKeyId}',
  operationId: 'updateConsumerKey',
  summary: 'Rename, disable or enable a consumer API key, or set its expiry',
  body: UPDATE_KEY_BODY,
  status: 200,
  answer: objectOf({
    ...LIST_ITEM,
    enabled: { type: 'boolean' },
    expiresAt: orNull(INSTANT),
    rateLimitId: orNull(TEXT),
  }),
  errors: ['key_not_found'],
  async handle({ id, body }, { keys, clock, log }) {
    const key = await keys.update(id, readChanges(body, clock));
    log.info({ event: 'key_updated', keyId: key.id }, 'a consumer key was changed');
    return {
      ...presentListItem(key),
      enabled: key.enabled,
      expiresAt: key.expiresAtMs === null ? null : isoSeconds(key.expiresAtMs),
      rateLimitId: key.planId,
    };
  },
});

/** Deletes a key: its next request is refused. */
export const deleteConsumerKey = endpoint({
  method: 'delete',
  path: '/consumer-api-key/{consumerApiKeyId}',
  operationId: 'deleteConsumerKey',
  summary: 'Delete a consumer API key',
  status: 200,
  answer: objectOf({ consumerApiKeyId: TEXT, message: TEXT }),
  errors: ['key_not_found'],
  async handle({ id }, { keys, log }) {
    await keys.remove(id);
    log.info({ event: 'key_deleted', keyId: id }, 'a consumer key was deleted');
    return { consumerApiKeyId: id, message: 'The consumer API key was deleted.' };
  },
});

function presentListItem(key: ConsumerKey): object {
  return {
    consumerApiKeyId: key.id,
    name: key.name,
    createdAt: isoSeconds(key.createdAtMs),
    lastUpdated: isoSeconds(key.updatedAtMs),
  };
}

function readChanges(body: UpdateKeyBody, clock: Clock): KeyChanges {
  const expiresAtMs = readExpiry(body.expiresAt, clock);
  const changes: KeyChanges = {
    ...(body.name === undefined ? {} : { name: body.name.trim() }),
    ...(body.enabled === undefined ? {} : { enabled: body.enabled }),
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
  };
  if (Object.keys(changes).length > 0) return changes;
  throw new InvalidBody([{ field: 'body', message: 'must have at least one of name, enabled, expiresAt' }]);
}

/** Only the clock knows what the schema can't: whether the instant is still to come. */
function readExpiry(text: string | null | undefined, clock: Clock): number | null | undefined {
  if (text === null || text === undefined) return text;
  const expiresAtMs = parseIsoUtc(text);
  if (expiresAtMs !== undefined && expiresAtMs > clock.nowMs()) return expiresAtMs;
  throw new InvalidBody([{ field: 'expiresAt', message: EXPIRES_AT.description }]);
}
