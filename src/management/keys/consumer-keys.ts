import { PlanNotFound } from '../../errors.ts';
import type { BodySchema } from '../../http/body-schema.ts';
import { sqlSeconds } from '../../http/timestamps.ts';
import type { KeyChanges } from '../../keys/key-repository.ts';
import { isPlanId } from '../../plans/plan.ts';
import type { Clock } from '../../platform/clock.ts';
import { endpoint, Reply } from '../endpoint.ts';
import { named, objectOf, TEXT } from '../response-schemas.ts';
import {
  KEY_FIELDS,
  KEY_ITEM,
  presentKeyItem,
  readExpiry,
  readMetadata,
  TAG_EDITS,
  type WrittenKeyFields,
} from './key-fields.ts';
import { readOverrides } from './limit-overrides.ts';

interface CreateKeyBody extends WrittenKeyFields {
  readonly name: string;
}
const CREATE_KEY_BODY: BodySchema = {
  type: 'object',
  additionalProperties: false,
  required: ['name'],
  properties: KEY_FIELDS,
};

/** Makes a key. Its secret is in the response. */
export const createConsumerKey = endpoint<CreateKeyBody>({
  method: 'post',
  path: '/consumer-api-key/create',
  operationId: 'createConsumerKey',
  summary: 'Create a consumer API key',
  scope: 'keys:write',
  body: CREATE_KEY_BODY,
  status: 201,
  tagged: true,
  response: named(
    'CreatedConsumerKey',
    objectOf({
      id: TEXT,
      name: TEXT,
      secret: TEXT,
      createdAt: { type: 'string', description: 'UTC', examples: ['2026-02-03 04:05:06'] },
    }),
  ),
  errors: ['plan_not_found'],
  async handle({ body, change }, { keys, clock, log }) {
    const created = await keys.create({ name: body.name.trim(), ...readFields(body, clock) }, change);
    log.info({ event: 'key_created', keyId: created.key.id }, 'a consumer key was created');
    const { id, name, createdAtMs } = created.key;
    const shown = { id, name, secret: created.secret, createdAt: sqlSeconds(createdAtMs) };
    return Reply.created(`/consumer-api-key/${id}`, created.key, shown);
  },
});

interface UpdateKeyBody extends WrittenKeyFields {
  readonly name?: string;
  readonly addTags?: readonly string[];
  readonly removeTags?: readonly string[];
}
const UPDATE_KEY_BODY: BodySchema = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  required: [],
  properties: { ...KEY_FIELDS, ...TAG_EDITS },
};

/** Changes the fields of a key that the body names; null removes. */
export const updateConsumerKey = endpoint<UpdateKeyBody>({
  method: 'patch',
  path: '/consumer-api-key/{consumerApiKeyId}',
  operationId: 'updateConsumerKey',
  summary: 'Change a consumer API key: everything but its secret',
  scope: 'keys:write',
  body: UPDATE_KEY_BODY,
  status: 200,
  tagged: true,
  conditional: true,
  response: KEY_ITEM,
  errors: ['key_not_found', 'plan_not_found'],
  async handle({ id, body, change }, { keys, clock, log }) {
    const key = await keys.update(id, readChanges(body, clock), change);
    log.info({ event: 'key_updated', keyId: key.id }, 'a consumer key was changed');
    return Reply.tagged(key, presentKeyItem(key));
  },
});

/** Deletes a key: its next request is rejected. */
export const deleteConsumerKey = endpoint({
  method: 'delete',
  path: '/consumer-api-key/{consumerApiKeyId}',
  operationId: 'deleteConsumerKey',
  summary: 'Delete a consumer API key',
  scope: 'keys:delete',
  status: 200,
  conditional: true,
  response: objectOf({ consumerApiKeyId: TEXT, message: TEXT }),
  errors: ['key_not_found'],
  async handle({ id, change }, { keys, log }) {
    await keys.remove(id, change);
    log.info({ event: 'key_deleted', keyId: id }, 'a consumer key was deleted');
    return { consumerApiKeyId: id, message: 'The consumer API key was deleted.' };
  },
});

function readChanges(body: UpdateKeyBody, clock: Clock): KeyChanges {
  const { name, addTags, removeTags } = body;
  return {
    ...readFields(body, clock),
    ...(name !== undefined && { name: name.trim() }),
    ...(addTags !== undefined && { addTags }),
    ...(removeTags !== undefined && { removeTags }),
  };
}

/** The fields that the body has, besides the name. Throws `InvalidBody`, or `PlanNotFound` for an id that no plan can have. */
function readFields(body: WrittenKeyFields, clock: Clock): Omit<KeyChanges, 'name'> {
  const {
    enabled,
    rateLimitId: planId,
    externalId,
    tags,
    overrides,
    allowedIps,
    allowedOrigins,
    selfService,
  } = body;
  const expiresAtMs = readExpiry(body.expiresAt, clock);
  const metadata = readMetadata(body.metadata);
  // What has another form is the id of nothing, and may hold what a database rejects.
  if (typeof planId === 'string' && !isPlanId(planId)) throw new PlanNotFound();
  return {
    ...(enabled !== undefined && { enabled }),
    ...(expiresAtMs !== undefined && { expiresAtMs }),
    ...(planId !== undefined && { planId }),
    ...(externalId !== undefined && { externalId }),
    ...(tags !== undefined && { tags: [...new Set(tags)] }),
    ...(metadata !== undefined && { metadata }),
    ...(overrides !== undefined && { overrides: readOverrides(overrides) }),
    ...(allowedIps !== undefined && { allowedIps }),
    ...(allowedOrigins !== undefined && { allowedOrigins }),
    ...(selfService !== undefined && { selfService: [...new Set(selfService)] }),
  };
}
