import { TollgateError } from '../../errors.ts';
import type { PathCase } from '../../paths/path-readings.ts';
import type { Clock } from '../../platform/clock.ts';
import { ConcurrencyLimit } from '../../platform/concurrency/concurrency-limit.ts';
import { canonicalTerms } from '../canonical-terms.ts';
import { checkPlan } from '../check-plan.ts';
import type { PlanTerms } from '../plan.ts';
import type { PlanService } from '../plan-service.ts';
import type { PlanPreview, PlanPreviews } from './plan-preview.ts';
import { PREVIEW_HOURS, type PreviewedLimit, previewedLimits } from './preview-limits.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const WORST = 20;
/** A preview reads much: more than one at a time would slow down what else needs the store. A group is an administrator. */
const READS = {
  maxRunning: 1,
  maxWaiting: 8,
  maxWaitingPerGroup: 2,
  overloaded: () =>
    new TollgateError('overloaded', 'Too many previews of plans wait to be made. Try again shortly.'),
};

/** Who wants a preview. */
export interface PreviewReader {
  /** Names the administrator; administrators take turns. */
  readonly name: string;
  /** The preview has only keys with all of these tags. */
  readonly onlyTags: readonly string[];
}

interface PlanPreviewerOptions {
  readonly plans: Pick<PlanService, 'get'>;
  readonly previews: PlanPreviews;
  readonly defaultPlanId: string | null;
  readonly pathCase: PathCase;
  readonly clock: Clock;
}

/** A preview of the last 28 days of UTC, the present one included. Instants are milliseconds since 1970. */
export interface DraftPreview extends PlanPreview {
  readonly fromMs: number;
  readonly toMs: number;
  /** The enforced limits of the draft. Undefined where the hours can't say. */
  readonly limits: readonly (PreviewedLimit & { readonly wouldBeLimited: number | undefined })[];
  /** Whether some requests of the draft cost another number than 1: they are counted as 1. */
  readonly hasCosts: boolean;
}

/** Shows what a change of a plan would do to the keys under it, judged by what they did. Changes nothing. */
export class PlanPreviewer {
  readonly #options: PlanPreviewerOptions;
  readonly #reads = new ConcurrencyLimit(READS);

  constructor(options: PlanPreviewerOptions) {
    this.#options = options;
  }

  /**
   * Throws `PlanNotFound`, `PreviewTooLarge`, `overloaded` if too many previews wait, of all readers or of this one, and what
   * `PlanService.update` throws for the same fields.
   */
  async preview(
    planId: string,
    changes: Partial<PlanTerms>,
    { name, onlyTags }: PreviewReader,
  ): Promise<DraftPreview> {
    const { plans, previews, defaultPlanId, pathCase, clock } = this.#options;
    const draft = canonicalTerms({ ...(await plans.get(planId)), ...changes }, pathCase);
    checkPlan(draft);
    const toMs = clock.nowMs();
    const fromMs = (Math.floor(toMs / DAY_MS) + 1) * DAY_MS - PREVIEW_HOURS * HOUR_MS;
    const all = previewedLimits(draft);
    const limits = all.filter(({ quality }) => quality !== 'unknown');
    const request = { planId, isDefault: planId === defaultPlanId, onlyTags, fromMs, toMs };
    const preview = await this.#reads.run(() => previews.read({ ...request, limits, worst: WORST }), name);
    const found = new Map(limits.map(({ limitId }, index) => [limitId, preview.byLimit[index]]));
    return {
      ...preview,
      ...{ fromMs, toMs, hasCosts: draft.costs.some(({ cost }) => cost !== 1) },
      limits: all.map((limit) => ({ ...limit, wouldBeLimited: found.get(limit.limitId) })),
    };
  }
}
