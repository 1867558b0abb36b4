import { type Period, parsePeriod } from '../../limiter/period.ts';
import type { AdditionalLimit, PlanTerms } from '../plan.ts';

const HOUR_MS = 3_600_000;
const DAY_HOURS = 24;
/** The hours that a preview looks at. */
export const PREVIEW_HOURS = 28 * 24;

/**
 * How good the figure of a limit is:
 * - `hours`: from the requests of each hour, added up over the window.
 * - `at-least`: windows do not begin and end with the hours and days that are compared: at least that many.
 * - `unknown`: the hours do not say which requests the limit applies to.
 */
export const PREVIEW_QUALITIES = ['hours', 'at-least', 'unknown'] as const;

type PreviewQuality = (typeof PREVIEW_QUALITIES)[number];

/** Why the figure of a limit is no better. */
export const PREVIEW_REASONS = [
  'shorter_than_hour',
  'not_whole_hours',
  'not_aligned_with_days',
  'longer_than_preview',
  'match',
  'customer',
] as const;

type PreviewReason = (typeof PREVIEW_REASONS)[number];

/** A limit of the draft, as hours of usage can be compared with it. */
export interface PreviewedLimit {
  readonly limitId: string;
  readonly limit: number;
  readonly period: string;
  readonly quality: PreviewQuality;
  /** Undefined with `hours`. */
  readonly reason: PreviewReason | undefined;
  /** The hours that are compared together: fewer than a day, or whole days. Those of less than a day begin again with each day. */
  readonly bucketHours: number;
  /** Windows that fit into them: at least one. */
  readonly windowsInBucket: number;
}

/** The enforced limits of a draft. A limit in shadow mode rejects nothing. */
export function previewedLimits(
  draft: Pick<PlanTerms, 'limit' | 'period' | 'additionalLimits'>,
): readonly PreviewedLimit[] {
  const main: AdditionalLimit = { limitId: 'main', limit: draft.limit, period: draft.period };
  return [main, ...draft.additionalLimits]
    .filter(({ mode = 'enforce' }) => mode === 'enforce')
    .map(previewed);
}

function previewed({ limitId, limit, period: text, per = 'key', match }: AdditionalLimit): PreviewedLimit {
  const period = parsePeriod(text);
  if (period === undefined)
    throw new Error(`The limit "${limitId}" has a period that can not be read: "${text}".`);
  const named = { limitId, limit, period: text };
  const unknown = { quality: 'unknown', bucketHours: 1, windowsInBucket: 1 } as const;
  if (match !== undefined) return { ...named, ...unknown, reason: 'match' };
  if (per === 'customer') return { ...named, ...unknown, reason: 'customer' };
  return { ...named, ...bucketOf(period) };
}

function bucketOf(period: Period): Omit<PreviewedLimit, 'limitId' | 'limit' | 'period'> {
  const all = { bucketHours: PREVIEW_HOURS, windowsInBucket: 1 };
  if (period.kind === 'calendar') return { ...all, quality: 'at-least', reason: 'longer_than_preview' };
  const { lengthMs } = period;
  if (lengthMs < HOUR_MS)
    return {
      ...{ quality: 'at-least', reason: 'shorter_than_hour', bucketHours: 1 },
      // A window may begin before the hour: one more than fit.
      windowsInBucket: Math.ceil(HOUR_MS / lengthMs) + 1,
    };
  if (lengthMs > PREVIEW_HOURS * HOUR_MS)
    return { ...all, quality: 'at-least', reason: 'longer_than_preview' };
  const hours = Math.floor(lengthMs / HOUR_MS);
  const bucketHours = hours < DAY_HOURS ? hours : hours - (hours % DAY_HOURS);
  const isAligned = hours < DAY_HOURS ? DAY_HOURS % hours === 0 : hours === bucketHours;
  const bucket = { bucketHours, windowsInBucket: 1 };
  if (lengthMs % HOUR_MS !== 0) return { ...bucket, quality: 'at-least', reason: 'not_whole_hours' };
  if (!isAligned) return { ...bucket, quality: 'at-least', reason: 'not_aligned_with_days' };
  return { ...bucket, quality: 'hours', reason: undefined };
}
