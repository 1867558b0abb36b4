import { RotationInProgress, SelfServiceNotAllowed } from '../../errors.ts';
import { SELF_SERVICE_PATH } from '../../paths/path-matcher.ts';
import type { Principal } from '../../permissions/principal.ts';
import { isoSecondsOrNull } from '../../platform/timestamps.ts';
import type { Endpoint } from '../endpoint.ts';
import { presentTotals, SHOWN_TOTALS } from '../keys/consumer-key-detail.ts';
import { CUSTOMER_QUERY, readCounts, readCustomer } from '../keys/live-counters.ts';
import { ROTATE_BODY, type RotateBody, rotateConsumerKey } from '../keys/rotate-key.ts';
import { presentCounters, SHOWN_COUNTERS } from '../keys/shown-counters.ts';
import { presentRotation, SHOWN_KEY_FIELDS } from '../keys/shown-key-fields.ts';
import { named, objectOf, orNull, TEXT } from '../response-schemas.ts';
import { showKeyUsage } from '../usage/show-usage.ts';

/** Shows a consumer its own key. */
const showOwnKey: Endpoint = {
  method: 'get',
  path: SELF_SERVICE_PATH,
  operationId: 'showOwnKey',
  summary: 'Show the presented key to its consumer',
  scope: null,
  forConsumers: true,
  query: CUSTOMER_QUERY,
  status: 200,
  response: named(
    'OwnKey',
    objectOf({
      consumerApiKeyId: TEXT,
      name: TEXT,
      expiresAt: SHOWN_KEY_FIELDS.expiresAt,
      rotation: SHOWN_KEY_FIELDS.rotation,
      selfService: SHOWN_KEY_FIELDS.selfService,
      rateLimitId: { ...orNull(TEXT), description: 'The plan that applies; null when none does.' },
      limits: SHOWN_COUNTERS,
      usage: named('UsageTotals', objectOf(SHOWN_TOTALS)),
    }),
  ),
  errors: ['key_not_found'],
  async handle({ principal, query }, services) {
    const id = ownKeyId(principal);
    const customerId = readCustomer(query.customerId);
    const { key, snapshot } = await services.keys.record(id, []);
    const [counts, usage] = await Promise.all([
      readCounts(snapshot, customerId, services),
      services.usage.read(id),
    ]);
    return {
      consumerApiKeyId: id,
      name: key.name,
      expiresAt: isoSecondsOrNull(key.expiresAtMs),
      rotation: key.rotation && presentRotation(key.rotation),
      selfService: key.selfService,
      rateLimitId: snapshot.plan?.id ?? null,
      limits: presentCounters(snapshot.plan, counts, counts?.nowMs ?? services.clock.nowMs()),
      usage: presentTotals(usage),
    };
  },
};

/** Shows a consumer the usage of its own key over time. */
const showOwnUsage: Endpoint = {
  ...showKeyUsage,
  path: `${SELF_SERVICE_PATH}/usage`,
  operationId: 'showOwnUsage',
  summary: 'Show the usage of the presented key over time',
  scope: null,
  forConsumers: true,
  handle: (call, services) => showKeyUsage.handle({ ...call, id: ownKeyId(call.principal) }, services),
};

/** Gives a consumer a new secret for its own key, if an administrator allows that. The consumer can't change the expiry. */
const rotateOwnKey: Endpoint<RotateBody> = {
  ...rotateConsumerKey,
  path: `${SELF_SERVICE_PATH}/rotate`,
  operationId: 'rotateOwnKey',
  summary: 'Give the presented key a new secret; the previous one stays valid for a time',
  scope: null,
  forConsumers: true,
  body: ROTATE_BODY,
  errors: ['missing_scope', 'key_not_found', 'rotation_in_progress'],
  async handle(call, services) {
    const id = ownKeyId(call.principal);
    const { key } = await services.keys.record(id, []);
    if (!key.selfService.includes('rotate')) throw new SelfServiceNotAllowed('rotate');
    // The rotation may end while the request is under way: what follows would find none, and replace the secret of the key's owner.
    if (call.principal.expiresAtMs !== null) throw new RotationInProgress();
    return rotateConsumerKey.handle({ ...call, id }, services);
  },
};

/** What consumers may do with the key that they present. */
export const SELF_SERVICE_ENDPOINTS: readonly Endpoint[] = [showOwnKey, showOwnUsage, rotateOwnKey];

function ownKeyId({ type, id }: Principal): string {
  if (type !== 'key' || id === null) throw new Error('The request presents no key.');
  return id;
}
