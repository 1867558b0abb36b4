import type { Period } from './period.ts';

/** The id of the limit that every plan has: its `limit` and `period`. */
export const MAIN_LIMIT_ID = 'main';

/** `enforce` rejects a request that finds no room; `shadow` only counts that it would have. */
export const LIMIT_MODES = ['enforce', 'shadow'] as const;
export type LimitMode = (typeof LIMIT_MODES)[number];

/** Whose requests share a window: all of a key, or those of one customer of a key. */
export const LIMIT_SCOPES = ['key', 'customer'] as const;
export type LimitScope = (typeof LIMIT_SCOPES)[number];

/** How much the requests of a key may cost together in one window. Immutable: an edit of the plan or the key makes a new one. */
export interface Limit {
  /** Unique in its plan; `main` for the plan's own. */
  readonly id: string;
  /** 1 … 999 999 999 999 999. Holds until `endsAtMs`, where there is one. */
  readonly limit: number;
  /** The plan's limit without the key's override. */
  readonly baseLimit: number;
  /** When the key's override ends and `baseLimit` holds again, by the store's clock; null = never. Milliseconds since 1970. */
  readonly endsAtMs: number | null;
  readonly period: Period;
  /** The period as the plan's author wrote it. */
  readonly periodText: string;
  readonly per: LimitScope;
  readonly mode: LimitMode;
  /** Names its window among those of the key: `<id>:<period token>`. */
  readonly windowName: string;
}

/** The limit at an instant of the store's clock. */
export function limitAt({ limit, baseLimit, endsAtMs }: Limit, nowMs: number): number {
  return endsAtMs === null || nowMs < endsAtMs ? limit : baseLimit;
}
