import { bodySchema, editSchema } from '../../http/body-schema.ts';
import type { HandoverRequest } from '../../keys/handovers/handover-service.ts';
import type { KeyChanges } from '../../keys/key-repository.ts';
import type { Clock } from '../../platform/clock.ts';
import { definedFields } from '../../platform/defined-fields.ts';
import { sqlSeconds } from '../../platform/timestamps.ts';
import { type Endpoint, Reply, type UnitServices } from '../endpoint.ts';
import {
  HANDOVER,
  madeWithHandover,
  presentSecret,
  withSecretOrHandover,
} from '../handovers/handover-fields.ts';
import { named, objectOf, TEXT } from '../response-schemas.ts';
import { KEY_FIELDS, readFields, TAG_EDITS, type WrittenKeyFields } from './key-fields.ts';
import { givenSecretIn, SECRET } from './secret-fields.ts';
import { KEY_ITEM, presentKeyItem } from './shown-key-fields.ts';

interface CreateKeyBody extends WrittenKeyFields {
  readonly name: string;
  readonly secret?: string;
  readonly handover?: HandoverRequest;
}
const CREATE_KEY_BODY = bodySchema(['name'], { ...KEY_FIELDS, secret: SECRET, handover: HANDOVER });

/** Makes a key. Its secret is in the response, unless a link hands it over. */
export const createConsumerKey: Endpoint<CreateKeyBody> = {
  method: 'post',
  path: '/consumer-api-key/create',
  operationId: 'createConsumerKey',
  summary: 'Create a consumer API key',
  scope: 'keys:write',
  body: CREATE_KEY_BODY,
  givenSecrets: givenSecretIn,
  status: 201,
  tagged: true,
  response: named(
    'CreatedConsumerKey',
    withSecretOrHandover({
      id: TEXT,
      name: TEXT,
      createdAt: { type: 'string', description: 'UTC', examples: ['2026-02-03 04:05:06'] },
    }),
  ),
  errors: ['plan_not_found', 'secret_taken', 'handover_unavailable'],
  async handle({ body, header, change }, services) {
    const { clock, log } = services;
    const fields = { name: body.name.trim(), ...readFields(body, clock) };
    const { secret: given, handover } = body;
    const create = async ({ keys, imports }: UnitServices) =>
      given === undefined
        ? keys.create(fields, change)
        : { key: await imports.create(fields, given, change), secret: given };
    const created = await madeWithHandover(create, { handover, header, change }, services);
    log.info({ event: 'key_created', keyId: created.key.id }, 'a consumer key was created');
    const { id, name, createdAtMs } = created.key;
    const shown = { id, name, ...presentSecret(created), createdAt: sqlSeconds(createdAtMs) };
    return Reply.created(`/consumer-api-key/${id}`, created.key, shown);
  },
};

interface UpdateKeyBody extends WrittenKeyFields {
  readonly name?: string;
  readonly addTags?: readonly string[];
  readonly removeTags?: readonly string[];
}
const UPDATE_KEY_BODY = editSchema({ ...KEY_FIELDS, ...TAG_EDITS });

/** Changes the fields of a key that the body names; null clears a field. */
export const updateConsumerKey: Endpoint<UpdateKeyBody> = {
  method: 'patch',
  path: '/consumer-api-key/{consumerApiKeyId}',
  operationId: 'updateConsumerKey',
  summary: 'Change a consumer API key: everything but its secret',
  scope: 'keys:write',
  body: UPDATE_KEY_BODY,
  status: 200,
  tagged: true,
  conditional: true,
  headers: ['Tollgate-Applies-Within'],
  response: KEY_ITEM,
  errors: ['key_not_found', 'plan_not_found'],
  async handle({ id, body, change }, { keys, clock, log }) {
    const key = await keys.update(id, readChanges(body, clock), change);
    log.info({ event: 'key_updated', keyId: key.id }, 'a consumer key was changed');
    return Reply.tagged(key, presentKeyItem(key));
  },
};

/** Deletes a key: its next request is rejected. */
export const deleteConsumerKey: Endpoint = {
  method: 'delete',
  path: '/consumer-api-key/{consumerApiKeyId}',
  operationId: 'deleteConsumerKey',
  summary: 'Delete a consumer API key',
  scope: 'keys:delete',
  status: 200,
  conditional: true,
  headers: ['Tollgate-Applies-Within'],
  response: objectOf({ consumerApiKeyId: TEXT, message: TEXT }),
  errors: ['key_not_found'],
  async handle({ id, change }, { keys, log }) {
    await keys.remove(id, change);
    log.info({ event: 'key_deleted', keyId: id }, 'a consumer key was deleted');
    return { consumerApiKeyId: id, message: 'The consumer API key was deleted.' };
  },
};

function readChanges(body: UpdateKeyBody, clock: Clock): KeyChanges {
  const { name, addTags, removeTags } = body;
  return definedFields({ ...readFields(body, clock), name: name?.trim(), addTags, removeTags });
}
