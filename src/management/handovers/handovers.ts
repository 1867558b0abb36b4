import { bodySchema } from '../../http/body-schema.ts';
import { HANDOVER_STATES, isHandoverId } from '../../keys/handovers/handover.ts';
import type { FoundHandover } from '../../keys/handovers/handover-repository.ts';
import type { HandoverRequest } from '../../keys/handovers/handover-service.ts';
import { isoSeconds, isoSecondsOrNull } from '../../platform/timestamps.ts';
import { type Endpoint, Reply } from '../endpoint.ts';
import { pageSchema, readListPage } from '../list-page.ts';
import { COUNTED_PAGE_QUERY } from '../page-query.ts';
import { INSTANT, named, objectOf, orNull, TEXT } from '../response-schemas.ts';
import { HANDOVER_FIELDS, MADE_HANDOVER, presentMadeHandover } from './handover-fields.ts';

const PATH = '/consumer-api-key/{consumerApiKeyId}/handover';

const MAKE_HANDOVER_BODY = bodySchema(['ttlSeconds'], HANDOVER_FIELDS);

/** Makes a link that shows the present secret of a key once. */
export const makeHandover: Endpoint<HandoverRequest> = {
  method: 'post',
  path: PATH,
  operationId: 'makeHandover',
  summary: 'Make a link that shows the secret of a consumer API key once',
  scope: 'keys:secret',
  body: MAKE_HANDOVER_BODY,
  status: 201,
  response: MADE_HANDOVER,
  errors: ['key_not_found', 'secret_not_available', 'handover_unavailable'],
  async handle({ id, body, header, change }, { handovers, log }) {
    const made = await handovers.make(id, { request: body, host: header('Host') }, change);
    log.info({ event: 'handover_made', keyId: id, handoverId: made.handoverId }, 'a hand-over link was made');
    const location = `/consumer-api-key/${id}/handover/${made.handoverId}`;
    return Reply.made(location, presentMadeHandover(made));
  },
};

const HANDOVER_ITEM = named(
  'Handover',
  objectOf({
    handoverId: TEXT,
    state: { type: 'string', enum: HANDOVER_STATES, description: 'Only open links show a secret.' },
    note: orNull(TEXT),
    createdAt: INSTANT,
    expiresAt: INSTANT,
    usedAt: orNull(INSTANT),
    revokedAt: orNull(INSTANT),
  }),
);

/** Lists the links of a key, newest first: until 30 days after their expiry. */
export const listHandovers: Endpoint = {
  method: 'get',
  path: PATH,
  operationId: 'listHandovers',
  summary: 'List the hand-over links of a consumer API key, newest first',
  scope: 'keys:read',
  query: COUNTED_PAGE_QUERY,
  status: 200,
  response: pageSchema('handovers', HANDOVER_ITEM, 'links'),
  errors: ['key_not_found', 'invalid_cursor'],
  async handle({ id, query, principal }, { keys, handovers }) {
    await keys.requireKey(id, principal.onlyTags);
    const { items, about } = await readListPage(query, {
      filter: { id },
      list: (page) => handovers.list(id, page),
      count: () => handovers.count(id),
      isId: isHandoverId,
      idOf: ({ handover }) => handover.id,
    });
    return { handovers: items.map(presentHandover), ...about };
  },
};

/** Ends a link that was not used yet. */
export const revokeHandover: Endpoint = {
  method: 'delete',
  path: `${PATH}/{handoverId}`,
  operationId: 'revokeHandover',
  summary: 'Revoke a hand-over link of a consumer API key',
  scope: 'keys:write',
  status: 200,
  response: objectOf({ handoverId: TEXT, message: TEXT }),
  errors: ['key_not_found', 'handover_not_found', 'handover_gone'],
  async handle({ id, subId, change }, { keys, handovers, log }) {
    await keys.requireKey(id, change.onlyTags);
    await handovers.revoke(id, subId, change);
    log.info({ event: 'handover_revoked', keyId: id, handoverId: subId }, 'a hand-over link was revoked');
    return { handoverId: subId, message: 'The hand-over link was revoked.' };
  },
};

function presentHandover({ handover, state }: FoundHandover): object {
  const { id, note, createdAtMs, expiresAtMs, usedAtMs, revokedAtMs } = handover;
  return {
    handoverId: id,
    state,
    note,
    createdAt: isoSeconds(createdAtMs),
    expiresAt: isoSeconds(expiresAtMs),
    usedAt: isoSecondsOrNull(usedAtMs),
    revokedAt: isoSecondsOrNull(revokedAtMs),
  };
}
