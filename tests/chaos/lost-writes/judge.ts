import type { Intervals } from '../intervals.ts';
import type { Attempt } from '../load.ts';
import type { Change, KeyTruth } from './changes.ts';

/** Whatever happens to Redis, a change holds after this, also while it is away. Milliseconds. */
const HOLDS_AFTER_MS = 3000;
/** How long a fault of Redis may be felt after it: connections that are made again, circuits that close. Milliseconds. */
const AFTERMATH_MS = 12_000;
/** What a list of faults is cut to. */
const SHOWN = 5;

/** What was asked, what was changed, and when Redis was disturbed. */
export interface Evidence {
  readonly attempts: readonly Attempt[];
  readonly changes: readonly Change[];
  readonly redisTrouble: Intervals;
  /** A key whose window was used up before anything happened, and until when no Redis had lost anything. */
  readonly usedUp: { readonly keyId: string; readonly since: number; readonly until: number };
}

/** How many requests could be judged, and a sentence for each promise that was not held. */
export interface Judgement {
  readonly judged: number;
  /** Of these, those that a change had to hold for with the next request. */
  readonly atOnce: number;
  readonly faults: readonly string[];
}

/**
 * A change holds with the next request while Redis is well, and within three seconds whatever happens to it; what happens to Redis keeps no
 * change from being made.
 */
export function judge(evidence: Evidence): Judgement {
  const { attempts, changes, redisTrouble, usedUp } = evidence;
  const byKey = Map.groupBy(changes, ({ keyId }) => keyId);
  const wrong: string[] = [];
  let [judged, atOnce] = [0, 0];
  for (const attempt of attempts) {
    const last = lastChangeBefore(attempt, byKey.get(attempt.key.id) ?? []);
    if (last === undefined || attempt.end !== 'complete') continue;
    const isWell = !redisTrouble.touch(last.startedAt - AFTERMATH_MS, attempt.endedAt);
    if (!isWell && attempt.startedAt - last.endedAt < HOLDS_AFTER_MS) continue;
    judged += 1;
    if (isWell) atOnce += 1;
    const fault = contradiction(attempt, last.truth);
    if (fault === undefined) continue;
    const afterMs = Math.round(attempt.startedAt - last.endedAt);
    wrong.push(
      `${fault} ${afterMs} ms after ${last.what}, which got ${last.status}${isWell ? ', with Redis well' : ''}`,
    );
  }
  const faults = wrong.length === 0 ? [] : [`${wrong.length} requests: ${wrong.slice(0, SHOWN).join('; ')}`];
  const failed = changes.filter(({ status }) => status >= 500);
  if (failed.length > 0)
    faults.push(`${failed.length} changes were not made: ${failed[0]?.what} got ${failed[0]?.status}`);
  const allowed = attempts.filter(
    ({ key, status, startedAt, endedAt }) =>
      key.id === usedUp.keyId && startedAt >= usedUp.since && endedAt <= usedUp.until && status === 200,
  );
  if (allowed.length > 0) faults.push(`${allowed.length} requests were allowed in a window that was used up`);
  return { judged, atOnce, faults };
}

/** The change whose truth the request must see; undefined where one was under way meanwhile. */
function lastChangeBefore({ startedAt, endedAt }: Attempt, changes: readonly Change[]): Change | undefined {
  const last = changes.findLast((change) => change.endedAt <= startedAt);
  const isDisturbed = changes.some((change) => change.endedAt > startedAt && change.startedAt <= endedAt);
  return isDisturbed ? undefined : last;
}

function contradiction({ key, status, limit, code }: Attempt, truth: KeyTruth): string | undefined {
  // Nothing was said about the key.
  if (status >= 500) return undefined;
  const isRejected = status === 401 || code === 'too_many_requests';
  const isCurrent = truth?.secret === key.secret;
  const isUsable = isCurrent && truth?.isEnabled === true;
  if (isUsable && isRejected) return `a valid key got ${status}`;
  if (!isUsable && !isRejected) return `${unusableKey(truth, isCurrent)} got ${status}`;
  if (isUsable && limit !== undefined && limit !== truth.limit)
    return `a key had the limit ${limit} for ${truth.limit}`;
  return undefined;
}

function unusableKey(truth: KeyTruth, isCurrent: boolean): string {
  if (truth === undefined) return 'a deleted key';
  return isCurrent ? 'a disabled key' : 'a key with a replaced secret';
}
