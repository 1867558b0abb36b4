import { TollgateError } from '../../errors.ts';
import type { PathCase } from '../../paths/path-readings.ts';
import type { Clock } from '../../platform/clock.ts';
import { canonicalTerms } from '../canonical-terms.ts';
import { checkPlan } from '../check-plan.ts';
import type { PlanTerms } from '../plan.ts';
import type { PlanService } from '../plan-service.ts';
import type { PlanPreview, PlanPreviews } from './plan-preview.ts';
import { PREVIEW_HOURS, type PreviewedLimit, previewedLimits } from './preview-limits.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const WORST = 20;

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
  #isReading = false;

  constructor(options: PlanPreviewerOptions) {
    this.#options = options;
  }

  /**
   * Throws `PlanNotFound`, `PreviewTooLarge`, `overloaded` while another preview is made, and what `PlanService.update` throws for the
   * same fields.
   */
  async preview(
    planId: string,
    changes: Partial<PlanTerms>,
    onlyTags: readonly string[],
  ): Promise<DraftPreview> {
    const { plans, previews, defaultPlanId, pathCase, clock } = this.#options;
    const draft = canonicalTerms({ ...(await plans.get(planId)), ...changes }, pathCase);
    checkPlan(draft);
    const toMs = clock.nowMs();
    const fromMs = (Math.floor(toMs / DAY_MS) + 1) * DAY_MS - PREVIEW_HOURS * HOUR_MS;
    const all = previewedLimits(draft);
    const limits = all.filter(({ quality }) => quality !== 'unknown');
    const request = { planId, isDefault: planId === defaultPlanId, onlyTags, fromMs, toMs };
    const preview = await this.#oneAtATime(() => previews.read({ ...request, limits, worst: WORST }));
    const found = new Map(limits.map(({ limitId }, index) => [limitId, preview.byLimit[index]]));
    return {
      ...preview,
      ...{ fromMs, toMs, hasCosts: draft.costs.some(({ cost }) => cost !== 1) },
      limits: all.map((limit) => ({ ...limit, wouldBeLimited: found.get(limit.limitId) })),
    };
  }
  /** A preview reads much: more than one of a process would slow down what else needs the store. */
  async #oneAtATime(read: () => Promise<PlanPreview>): Promise<PlanPreview> {
    if (this.#isReading)
      throw new TollgateError('overloaded', 'Another preview of a plan is being made. Try again shortly.');
    this.#isReading = true;
    try {
      return await read();
    } finally {
      this.#isReading = false;
    }
  }
}
