import type { components } from '../../../client/management-api.ts';
import type { Tone } from '../../components/text/status-badge.tsx';

export type ListedKey = components['schemas']['ListedConsumerKey'];
export type KeyDetail = components['schemas']['ConsumerKeyDetail'];
export type LimitCounter = components['schemas']['LimitCounter'];

const SOON_MS = 30 * 86_400_000;

export interface KeyState {
  readonly name: 'active' | 'disabled' | 'expired' | 'expires soon';
  readonly tone: Tone;
}

/** How the gateway treats requests with the key, apart from its limits. */
export function keyState(key: Pick<ListedKey, 'enabled' | 'expiresAt'>, now: number): KeyState {
  const expiresAt = key.expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(key.expiresAt);
  if (expiresAt <= now) return { name: 'expired', tone: 'failed' };
  if (!key.enabled) return { name: 'disabled', tone: 'neutral' };
  return expiresAt - now <= SOON_MS
    ? { name: 'expires soon', tone: 'limited' }
    : { name: 'active', tone: 'allowed' };
}

/** The limit nearest to rejecting: only enforced limits of the whole key count. */
export function tightestLimit(limits: readonly LimitCounter[]): LimitCounter | undefined {
  const enforced = limits.filter(({ mode, per }) => mode === 'enforce' && per === 'key');
  return enforced.toSorted((a, b) => usedShare(b) - usedShare(a))[0];
}

/** The quota of a window: its limit, and the grants in it. */
export function quotaOf({ limit, granted }: LimitCounter): number {
  return limit + (granted ?? 0);
}

function usedShare(counter: LimitCounter): number {
  return (counter.used ?? 0) / Math.max(quotaOf(counter), 1);
}
