import type { AuditTarget } from '../../audit/audit-entry.ts';
import { KeyNotFound } from '../../errors.ts';
import { bodySchema } from '../../http/body-schema.ts';
import { keyTarget } from '../../keys/audited-key.ts';
import { isVisible } from '../../permissions/visible-records.ts';
import { type Endpoint, Reply } from '../endpoint.ts';
import { named, objectOf } from '../response-schemas.ts';
import { PRESENTED_SECRET } from './secret-fields.ts';
import { KEY_ITEM_FIELDS, presentKeyItem } from './shown-key-fields.ts';

const FIND_KEY_BODY = bodySchema(['secret'], { secret: PRESENTED_SECRET });

const OPERATION = 'findConsumerKey';

/** Finds the key of a secret. The secret is in the body, because logs on the way would contain a path or a query. */
export const findConsumerKey: Endpoint<{ readonly secret: string }> = {
  method: 'post',
  path: '/api-keys/find',
  operationId: OPERATION,
  summary: 'Find the consumer API key that has a secret',
  scope: 'keys:read',
  body: FIND_KEY_BODY,
  limitsGuesses: 'key_not_found',
  withoutTransaction: true,
  status: 200,
  tagged: true,
  response: named(
    'FoundConsumerKey',
    objectOf({
      ...KEY_ITEM_FIELDS,
      matchedSecret: {
        type: 'string',
        enum: ['current', 'previous'],
        description:
          'Which secret of the key it is: previous is the one before the rotation that is under way.',
      },
    }),
  ),
  errors: ['key_not_found'],
  async handle({ body: { secret }, change }, { imports, audit, log }) {
    const one = await imports.find(secret);
    const found = one !== undefined && isVisible(one.key.tags, change.onlyTags) ? one : undefined;
    const target: AuditTarget =
      found === undefined ? { type: 'operation', id: OPERATION, name: null, tags: [] } : keyTarget(found.key);
    const outcome = found === undefined ? ({ outcome: 'key_not_found' } as const) : {};
    await audit.record({ action: 'key.find', target, changes: {}, ...outcome }, change);
    if (found === undefined) throw new KeyNotFound('No consumer API key has this secret.');
    const { key, isPrevious } = found;
    log.info({ event: 'key_found', keyId: key.id }, 'a consumer key was found by its secret');
    return Reply.tagged(key, { ...presentKeyItem(key), matchedSecret: isPrevious ? 'previous' : 'current' });
  },
};
