import type { FieldSchema } from '../../http/body-schema.ts';
import { type LimitOverrides, MAX_OVERRIDES } from '../../limiter/limit-overrides.ts';
import { isoSeconds, parseIsoUtc } from '../../platform/timestamps.ts';
import type { ResponseSchema } from '../endpoint.ts';
import { LIMIT } from '../plans/plan-schema.ts';
import { INSTANT, objectOf } from '../response-schemas.ts';

/** Limits of a key that replace the plan's, as they are in a body. */
export type WrittenOverrides = Readonly<
  Record<string, { readonly limit: number; readonly until?: string | null }>
>;

/** The field of a key in a body. */
export const OVERRIDES: FieldSchema = {
  description: `must be an object of at most ${MAX_OVERRIDES} limits by limitId, like {"main": {"limit": 5000, "until": "2026-12-31T00:00:00Z"}}, or null for none`,
  type: ['object', 'null'],
  maxProperties: MAX_OVERRIDES,
  propertyNames: { pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$' },
  additionalProperties: {
    title: 'WrittenLimitOverride',
    description: 'must be an object with "limit" and perhaps "until"',
    type: 'object',
    required: ['limit'],
    additionalProperties: false,
    properties: {
      limit: LIMIT,
      until: {
        description: 'must be an instant as YYYY-MM-DDThh:mm:ssZ (UTC), or null for good',
        type: ['string', 'null'],
        format: 'utc-instant',
      },
    },
  },
};

/** The field of a key in a response. */
export const SHOWN_OVERRIDES: ResponseSchema = {
  type: 'object',
  description: 'Limits of this key that differ from those of its plan, by limitId.',
  additionalProperties: {
    title: 'LimitOverride',
    ...objectOf({ limit: { type: 'integer', minimum: 1 } }, { until: INSTANT }),
  },
};

export function readOverrides(written: WrittenOverrides | null): LimitOverrides {
  return Object.fromEntries(
    Object.entries(written ?? {}).map(([limitId, { limit, until }]) => {
      const untilMs = typeof until === 'string' ? (parseIsoUtc(until) ?? null) : null;
      return [limitId, { limit, untilMs }];
    }),
  );
}

export function presentOverrides(overrides: LimitOverrides): object {
  return Object.fromEntries(
    Object.entries(overrides).map(([limitId, { limit, untilMs }]) => [
      limitId,
      untilMs === null ? { limit } : { limit, until: isoSeconds(untilMs) },
    ]),
  );
}
