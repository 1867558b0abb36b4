import { PlanNotFound } from '../../errors.ts';
import { bodySchema } from '../../http/body-schema.ts';
import { isPlanId } from '../../plans/plan-id.ts';
import type { Endpoint } from '../endpoint.ts';
import { objectOf, TEXT } from '../response-schemas.ts';

interface BindPlanBody {
  readonly consumerApiKeyId: string;
  readonly rateLimitId: string;
}
/** Any text is allowed: no record has an id of another form, so that such an id gets 404. */
const BIND_PLAN_BODY = bodySchema(['consumerApiKeyId', 'rateLimitId'], {
  consumerApiKeyId: { description: 'must be the id of a consumer API key', type: 'string', minLength: 1 },
  rateLimitId: { description: 'must be the id of a rate limit plan', type: 'string', minLength: 1 },
});

/** Binds a plan to a key: the key's next request counts against it. */
export const applyRateLimit: Endpoint<BindPlanBody> = {
  method: 'post',
  path: '/api-keys/apply-rate-limit',
  operationId: 'applyRateLimit',
  summary: 'Apply a rate limit plan to a consumer API key',
  scope: 'keys:write',
  body: BIND_PLAN_BODY,
  status: 200,
  conditional: true,
  headers: ['Tollgate-Applies-Within'],
  response: objectOf({
    consumerApiKeyId: TEXT,
    rateLimitId: TEXT,
    message: TEXT,
    limit: { type: 'integer', minimum: 1 },
    period: TEXT,
  }),
  errors: ['key_not_found', 'plan_not_found'],
  async handle({ body, change }, { keys, log }) {
    const { consumerApiKeyId: keyId, rateLimitId } = body;
    // No plan has an id of another form, and Postgres might reject its characters.
    if (!isPlanId(rateLimitId)) throw new PlanNotFound();
    const { plan } = await keys.bind(keyId, rateLimitId, change);
    // The plan was deleted in the meantime.
    if (plan === null) throw new PlanNotFound();
    log.info({ event: 'plan_applied', keyId, planId: plan.id }, 'a rate limit plan was applied to a key');
    return {
      consumerApiKeyId: keyId,
      rateLimitId: plan.id,
      message: 'The rate limit plan was applied to the consumer API key.',
      limit: plan.limits.main.baseLimit,
      period: plan.limits.main.periodText,
    };
  },
};
