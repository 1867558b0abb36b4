import type { components } from '../../../client/management-api.ts';

export type ListedKey = components['schemas']['ListedConsumerKey'];
export type KeyDetail = components['schemas']['ConsumerKeyDetail'];
export type LimitCounter = components['schemas']['LimitCounter'];

/** What a dialog about a key gets. */
export interface KeyDialogProps {
  readonly apiKey: KeyDetail;
  readonly onClose: () => void;
}

/** What a dialog about the window of a limit gets. */
export interface LimitDialogProps {
  readonly keyId: string;
  readonly counter: LimitCounter;
  /** The customer whose window is shown; empty for anonymous requests. */
  readonly customerId: string;
  readonly onClose: () => void;
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
