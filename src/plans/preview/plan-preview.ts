import { TollgateError } from '../../errors.ts';
import type { PreviewedLimit } from './preview-limits.ts';

/** What a preview is made from. Instants are milliseconds since 1970, the first ones of hours of UTC. */
export interface PreviewRequest {
  readonly planId: string;
  /** Whether the plan applies to keys without one, too. */
  readonly isDefault: boolean;
  /** Only keys with all of these tags. */
  readonly onlyTags: readonly string[];
  readonly fromMs: number;
  readonly toMs: number;
  /** Those whose quality is not `unknown`. */
  readonly limits: readonly PreviewedLimit[];
  /** Keys that are named. */
  readonly worst: number;
}

/** The requests of one key, or of all. */
interface PreviewCounts {
  readonly requests: number;
  /** Those that were limited. */
  readonly wasLimited: number;
  /** Those that the draft would have limited: by the limit of each key that limits most. */
  readonly wouldBeLimited: number;
}

/** A key in a preview. */
export interface PreviewedKey extends PreviewCounts {
  readonly keyId: string;
  readonly name: string;
}

/** A plan's last weeks under a draft. */
export interface PlanPreview {
  readonly totals: PreviewCounts;
  /** The keys that the plan applies to. */
  readonly keys: number;
  /** Those of them that were limited, and that would have been. */
  readonly keysWereLimited: number;
  readonly keysWouldBeLimited: number;
  /** By limit, in the order of the request: how many requests it would have limited by itself. */
  readonly byLimit: readonly number[];
  /** The keys that would have been limited most, most first. */
  readonly worst: readonly PreviewedKey[];
}

/** The usage of the keys can't be compared with the draft in the time that a preview may take. */
export class PreviewTooLarge extends TollgateError {
  constructor(cause: unknown) {
    super(
      'range_too_large',
      'The keys under this plan have more usage than a preview can compare in time. Add the limit to the plan in shadow mode instead.',
      { cause },
    );
  }
}

/** Compares stored usage with a draft. Rejects with `PreviewTooLarge`, and with `StoreUnavailable` if the store does not respond. */
export interface PlanPreviews {
  read(request: PreviewRequest): Promise<PlanPreview>;
}
