import type { ClaimOutcome, UsageClaim } from '../../usage/live-usage.ts';
import { callScript } from './call-scripts.ts';
import type { RedisConnection } from './connection.ts';
import { LuaScript } from './lua-script.ts';
import { redisUnavailable } from './redis-failure.ts';
import { MARK_SETS, markSetOf, usageMarksKey } from './usage-key-names.ts';

/** How long a flusher may keep a key before another takes over. */
const LEASE_MS = '30000';
/** From a look at a key to the last look, and from a failure to the next try. */
const LOOK_AGAIN_MS = '5000';
const RETRY_MS = '2000';

/**
 * Which keys have live counts, so that any replica can find them. A mark can't be set in one step with the counts, which lie in another
 * hash slot: it is set before them, and taken off only after two looks that found nothing.
 */
export class UsageMarks {
  readonly #redis: RedisConnection;
  readonly #delayMs: string;
  readonly #mark = new LuaScript('markUsage-1');
  readonly #claim = new LuaScript('claimUsage-1');
  readonly #settle = new LuaScript('settleUsage-1');

  /** `delayMs`: from a key's mark to the moment that it is due. */
  constructor(redis: RedisConnection, delayMs: number) {
    this.#redis = redis;
    this.#delayMs = String(delayMs);
  }

  /** Resolves with whether all are marked. Never rejects. */
  async mark(keyIds: readonly string[]): Promise<boolean> {
    const sets = [...Map.groupBy(keyIds, markSetOf)];
    const calls = sets.flatMap(([set, ids]) =>
      chunks(ids).map((chunk) => [usageMarksKey(set), this.#delayMs, ...chunk]),
    );
    const replies = await callScript(this.#redis, this.#mark, calls);
    return replies.every((reply) => 'reply' in reply);
  }

  /** About `limit` keys that are due, from all sets alike. */
  async claim(limit: number): Promise<readonly UsageClaim[]> {
    const fromEach = String(Math.ceil(limit / MARK_SETS));
    const sets = Array.from({ length: MARK_SETS }, (_, set) => set);
    const calls = sets.map((set) => [usageMarksKey(set), fromEach, LEASE_MS]);
    const replies = await callScript(this.#redis, this.#claim, calls);
    const claims = replies.map((reply, set) => ('reply' in reply ? claimsOf(set, reply.reply) : undefined));
    // Keys of a set that answered are given up with the others: their lease runs out.
    if (claims.includes(undefined)) throw redisUnavailable(replies.find((reply) => 'error' in reply)?.error);
    return claims.flatMap((ofSet) => ofSet ?? []);
  }

  async settle(outcomes: readonly (readonly [UsageClaim, ClaimOutcome])[]): Promise<void> {
    const bySet = Map.groupBy(outcomes, ([claim]) => parseLease(claim.lease).setAndScore);
    const calls = [...bySet].map(([setAndScore, ofSet]) => {
      const [set, score = ''] = setAndScore.split(':');
      const verdicts = ofSet.flatMap(([claim, outcome]) => [claim.keyId, verdictOf(claim, outcome)]);
      return [usageMarksKey(Number(set)), score, LOOK_AGAIN_MS, RETRY_MS, ...verdicts];
    });
    const failed = (await callScript(this.#redis, this.#settle, calls)).find((reply) => 'error' in reply);
    if (failed) throw redisUnavailable(failed.error);
  }
}

/** A lease reads `<set>:<score>:<1 when it is the last look>`. */
function parseLease(lease: string): { readonly setAndScore: string; readonly isLastLook: boolean } {
  return { setAndScore: lease.slice(0, -2), isLastLook: lease.endsWith('1') };
}

function verdictOf(claim: UsageClaim, outcome: ClaimOutcome): 'look' | 'forget' | 'retry' {
  if (outcome === 'failed') return 'retry';
  return outcome === 'idle' && parseLease(claim.lease).isLastLook ? 'forget' : 'look';
}

function claimsOf(set: number, reply: unknown): readonly UsageClaim[] {
  const [score, ...entries] = Array.isArray(reply) ? reply.map(String) : [];
  const claims: UsageClaim[] = [];
  for (let index = 0; index + 2 < entries.length; index += 3) {
    claims.push({
      keyId: entries[index] ?? '',
      lease: `${set}:${score}:${entries[index + 1]}`,
      overdueMs: Number(entries[index + 2]),
    });
  }
  return claims;
}

/** A script's arguments have a limit. */
function chunks(keyIds: readonly string[]): readonly (readonly string[])[] {
  const size = 1000;
  return Array.from({ length: Math.ceil(keyIds.length / size) }, (_, index) =>
    keyIds.slice(index * size, (index + 1) * size),
  );
}
