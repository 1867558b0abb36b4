import { StatusBadge, type Tone } from '../../components/text/status-badge.tsx';
import type { ListedKey } from './key-model.ts';

/** A key that expires within this time needs attention; the gateway's filter `expiring` has the same. Days. */
export const SOON_DAYS = 30;
const DAY_MS = 86_400_000;

interface KeyState {
  readonly name: 'active' | 'disabled' | 'expired' | 'expires soon';
  readonly tone: Tone;
}

/** How the gateway treats requests with the key, apart from its limits. */
export function keyState(key: Pick<ListedKey, 'enabled' | 'expiresAt'>, now: number): KeyState {
  const expiresAt = key.expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(key.expiresAt);
  if (expiresAt <= now) return { name: 'expired', tone: 'failed' };
  if (!key.enabled) return { name: 'disabled', tone: 'neutral' };
  return expiresAt - now <= SOON_DAYS * DAY_MS
    ? { name: 'expires soon', tone: 'limited' }
    : { name: 'active', tone: 'allowed' };
}

export function KeyStateBadge({ state }: { readonly state: KeyState }) {
  return <StatusBadge tone={state.tone}>{state.name}</StatusBadge>;
}
