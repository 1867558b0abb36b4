import { type DecisionsStage, playDecisions } from './play-decisions.ts';
import { judgeUsage, makePlan, makeTwinKeys, type TwinKeys } from './twin-keys.ts';

/** How long, and from where. */
export interface FuzzPlan {
  readonly firstSeed: number;
  /** How many sequences at most. */
  readonly most: number;
  /** By `performance.now()`; no sequence begins after it. */
  readonly deadline: number;
}

/** What a run came to. */
export interface DecisionsReport {
  readonly played: number;
  /** Sentences, none when all promises held; each with its seed. */
  readonly findings: readonly string[];
  readonly endings: ReadonlyMap<string, number>;
}

/** The usage of so many keys is looked at afterwards: the last ones, to bound the time. */
const JUDGED = 25;

/** Plays sequences, the n-th made from the seed + n, until one does not hold. */
export async function fuzzDecisions(
  stage: DecisionsStage,
  { firstSeed, most, deadline }: FuzzPlan,
): Promise<DecisionsReport> {
  await makePlan(stage.admin);
  const findings: string[] = [];
  const endings = new Map<string, number>();
  const keys: TwinKeys[] = [];
  let count = 0;
  for (; count < most && performance.now() < deadline && findings.length === 0; count += 1) {
    const seed = firstSeed + count;
    const twins = await makeTwinKeys(stage.admin);
    const played = await playDecisions(stage, twins, seed);
    if (!played.isDisturbed) keys.push(twins);
    findings.push(...played.findings.map((finding) => `seed ${seed}: ${finding}`));
    for (const [ending, many] of played.endings) endings.set(ending, (endings.get(ending) ?? 0) + many);
  }
  findings.push(...(await judgeUsage(stage.admin, keys.slice(-JUDGED))));
  return { played: count, findings, endings };
}
