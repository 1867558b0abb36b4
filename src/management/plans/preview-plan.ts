import type { DraftPreview } from '../../plans/preview/plan-previewer.ts';
import { PREVIEW_QUALITIES, PREVIEW_REASONS } from '../../plans/preview/preview-limits.ts';
import { isoSeconds } from '../../platform/timestamps.ts';
import type { Endpoint } from '../endpoint.ts';
import { COUNT, INSTANT, listOf, named, objectOf, orNull, TEXT } from '../response-schemas.ts';
import { UPDATE_PLAN_BODY, type UpdatePlanBody } from './plan-schema.ts';

const COUNTS = {
  requests: COUNT,
  wasLimited: { ...COUNT, description: 'Those that got 429.' },
  wouldBeLimited: { ...COUNT, description: 'Those that the draft would have limited.' },
};

const LIMIT = named(
  'PreviewedLimit',
  objectOf({
    limitId: TEXT,
    limit: COUNT,
    period: TEXT,
    quality: {
      type: 'string',
      enum: PREVIEW_QUALITIES,
      description:
        '"hours": from whole hours of usage; "at-least": a lower bound; "unknown": usage by hour does not say.',
    },
    reason: { ...orNull({ type: 'string', enum: PREVIEW_REASONS }), description: 'Null with "hours".' },
    wouldBeLimited: { ...orNull(COUNT), description: 'By this limit alone. Null with "unknown".' },
    shadowLimit: {
      ...orNull({ type: 'object', additionalProperties: true }),
      description:
        'For "additionalLimits": counts what this limit would reject, and rejects nothing. Null with "hours".',
    },
  }),
);

/** Compares a draft of a plan with what the keys under the plan did. Changes nothing. */
export const previewRateLimit: Endpoint<UpdatePlanBody> = {
  method: 'post',
  path: '/rate-limit/{rateLimitId}/preview',
  operationId: 'previewRateLimit',
  summary: 'Show how often the last 28 days would have been limited under a draft of a plan',
  scope: ['plans:read', 'keys:read', 'usage:read'],
  body: UPDATE_PLAN_BODY,
  status: 200,
  withoutTransaction: true,
  response: named(
    'PlanPreview',
    objectOf({
      rateLimitId: TEXT,
      from: INSTANT,
      to: INSTANT,
      keys: { ...COUNT, description: 'The keys that the plan applies to now.' },
      keysWereLimited: COUNT,
      keysWouldBeLimited: COUNT,
      ...COUNTS,
      limits: listOf(LIMIT),
      costsIgnored: {
        type: 'boolean',
        description: 'Whether the draft has costs other than 1: each request counts as 1 here.',
      },
      worst: listOf(named('PreviewedKey', objectOf({ consumerApiKeyId: TEXT, name: TEXT, ...COUNTS }))),
    }),
  ),
  errors: ['pattern_not_canonical', 'plan_not_found', 'range_too_large'],
  async handle({ id, body, principal }, { previewer }) {
    const { id: principalId, identity, onlyTags } = principal;
    const name = identity?.subject ?? principalId ?? '';
    return { rateLimitId: id, ...presentPreview(await previewer.preview(id, body, { name, onlyTags })) };
  },
};

function presentPreview({ fromMs, toMs, totals, limits, hasCosts, worst, ...preview }: DraftPreview): object {
  const { keys, keysWereLimited, keysWouldBeLimited } = preview;
  return {
    ...{ from: isoSeconds(fromMs), to: isoSeconds(toMs) },
    ...{ keys, keysWereLimited, keysWouldBeLimited, ...totals },
    limits: limits.map(({ limitId, limit, period, quality, reason, wouldBeLimited }) => ({
      ...{ limitId, limit, period, quality },
      reason: reason ?? null,
      wouldBeLimited: wouldBeLimited ?? null,
      shadowLimit: quality === 'hours' ? null : { limitId: 'preview', limit, period, mode: 'shadow' },
    })),
    costsIgnored: hasCosts,
    worst: worst.map(({ keyId, ...key }) => ({ consumerApiKeyId: keyId, ...key })),
  };
}
