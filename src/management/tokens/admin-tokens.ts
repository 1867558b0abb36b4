import { isAdminTokenId } from '../../admins/admin-token.ts';
import { bodySchema, editSchema } from '../../http/body-schema.ts';
import type { Preset, Scope } from '../../permissions/scopes.ts';
import { isoSecondsOrNull } from '../../platform/timestamps.ts';
import { type Endpoint, Reply } from '../endpoint.ts';
import { ROTATE_BODY, type RotateBody } from '../keys/rotate-key.ts';
import { pageSchema, readListPage } from '../list-page.ts';
import { COUNTED_PAGE_QUERY } from '../page-query.ts';
import { INSTANT, objectOf, orNull, TEXT } from '../response-schemas.ts';
import {
  presentToken,
  readTokenFields,
  TOKEN_FIELDS,
  TOKEN_ITEM,
  type WrittenTokenFields,
} from './admin-token-fields.ts';

const SECRET = { ...TEXT, description: 'Shown here and never again.', examples: ['tga_…'] };

interface CreateTokenBody extends WrittenTokenFields {
  readonly name: string;
  readonly scopes: readonly (Scope | Preset)[];
}
const CREATE_TOKEN_BODY = bodySchema(['name', 'scopes'], TOKEN_FIELDS);

/** Creates an admin token. Only this response shows its secret. */
export const createAdminToken: Endpoint<CreateTokenBody> = {
  method: 'post',
  path: '/tollgate/admin-token/create',
  operationId: 'createAdminToken',
  summary: 'Create an admin token',
  scope: 'tokens:write',
  body: CREATE_TOKEN_BODY,
  status: 201,
  tagged: true,
  response: { title: 'CreatedAdminToken', allOf: [TOKEN_ITEM, objectOf({ secret: SECRET })] },
  errors: [],
  async handle({ body, principal, change }, { tokens, clock, log }) {
    const fields = {
      name: body.name,
      scopes: [],
      onlyTags: [],
      allowedIps: null,
      expiresAtMs: null,
      ...readTokenFields(body, clock),
    };
    const { token, secret } = await tokens.create(fields, principal, change);
    log.info({ event: 'admin_token_created', adminTokenId: token.id }, 'an admin token was created');
    const shown = { ...presentToken(token, clock.nowMs()), secret };
    return Reply.created(`/tollgate/admin-token/${token.id}`, token, shown);
  },
};

/** Lists the admin tokens, newest first, without their secrets. */
export const listAdminTokens: Endpoint = {
  method: 'get',
  path: '/tollgate/admin-token',
  operationId: 'listAdminTokens',
  summary: 'List admin tokens, newest first',
  scope: 'tokens:write',
  query: COUNTED_PAGE_QUERY,
  status: 200,
  response: pageSchema('adminTokens', TOKEN_ITEM, 'tokens'),
  errors: ['invalid_cursor'],
  async handle({ query, principal }, { tokens, clock }) {
    const { items, about } = await readListPage(query, {
      list: (page) => tokens.list(page, principal),
      count: () => tokens.count(principal),
      isId: isAdminTokenId,
      idOf: ({ id }) => id,
    });
    return { adminTokens: items.map((token) => presentToken(token, clock.nowMs())), ...about };
  },
};

/** Shows one admin token, without its secret. */
export const showAdminToken: Endpoint = {
  method: 'get',
  path: '/tollgate/admin-token/{adminTokenId}',
  operationId: 'showAdminToken',
  summary: 'Show an admin token',
  scope: 'tokens:write',
  status: 200,
  tagged: true,
  response: TOKEN_ITEM,
  errors: ['admin_token_not_found'],
  async handle({ id, principal }, { tokens, clock }) {
    const token = await tokens.get(id, principal);
    return Reply.tagged(token, presentToken(token, clock.nowMs()));
  },
};

const UPDATE_TOKEN_BODY = editSchema(TOKEN_FIELDS);

/** Changes the fields of an admin token that the body names; null clears a field. */
export const updateAdminToken: Endpoint<WrittenTokenFields> = {
  method: 'patch',
  path: '/tollgate/admin-token/{adminTokenId}',
  operationId: 'updateAdminToken',
  summary: 'Change an admin token: everything but its secret',
  scope: 'tokens:write',
  body: UPDATE_TOKEN_BODY,
  status: 200,
  tagged: true,
  conditional: true,
  response: TOKEN_ITEM,
  errors: ['admin_token_not_found'],
  async handle({ id, body, principal, change }, { tokens, clock, log }) {
    const changes = readTokenFields(body, clock);
    const token = await tokens.update(id, { changes, principal }, change);
    log.info({ event: 'admin_token_updated', adminTokenId: id }, 'an admin token was changed');
    return Reply.tagged(token, presentToken(token, clock.nowMs()));
  },
};

/** Deletes an admin token: its next request is rejected. */
export const deleteAdminToken: Endpoint = {
  method: 'delete',
  path: '/tollgate/admin-token/{adminTokenId}',
  operationId: 'deleteAdminToken',
  summary: 'Delete an admin token',
  scope: 'tokens:write',
  status: 200,
  conditional: true,
  response: objectOf({ adminTokenId: TEXT, message: TEXT }),
  errors: ['admin_token_not_found'],
  async handle({ id, change }, { tokens, log }) {
    await tokens.remove(id, change);
    log.info({ event: 'admin_token_deleted', adminTokenId: id }, 'an admin token was deleted');
    return { adminTokenId: id, message: 'The admin token was deleted.' };
  },
};

/** Gives an admin token a new secret. The previous one stays valid for a grace period. */
export const rotateAdminToken: Endpoint<RotateBody> = {
  method: 'post',
  path: '/tollgate/admin-token/{adminTokenId}/rotate',
  operationId: 'rotateAdminToken',
  summary: 'Give an admin token another secret',
  scope: 'tokens:write',
  body: ROTATE_BODY,
  status: 200,
  tagged: true,
  conditional: true,
  response: objectOf({
    adminTokenId: TEXT,
    secret: SECRET,
    previousValidUntil: {
      ...orNull(INSTANT),
      description: 'Null: the secret before is rejected from now on.',
    },
    message: TEXT,
  }),
  errors: ['admin_token_not_found', 'rotation_in_progress'],
  async handle({ id, body, principal, change }, { tokens, log }) {
    const graceMs = body.graceSeconds * 1000;
    const { token, secret } = await tokens.rotate(id, { graceMs, principal }, change);
    log.info({ event: 'admin_token_rotated', adminTokenId: id }, 'an admin token was given another secret');
    return Reply.tagged(token, {
      adminTokenId: id,
      secret,
      previousValidUntil: isoSecondsOrNull(token.previousValidUntilMs),
      message: 'The admin token has another secret.',
    });
  },
};
