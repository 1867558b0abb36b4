/** Another limit for one key in place of its plan's; the period stays. */
interface LimitOverride {
  /** 1 … 999 999 999 999 999. */
  readonly limit: number;
  /** From then on the plan's limit holds again, by the store's clock; null = never. Milliseconds since 1970. */
  readonly untilMs: number | null;
}

/** The overrides of a key by `limitId`. */
export type LimitOverrides = Readonly<Record<string, LimitOverride>>;

/** Most overrides of a key. */
export const MAX_OVERRIDES = 32;

/** A key without any. */
export const NO_OVERRIDES: LimitOverrides = {};
