import type { Limit } from './limit.ts';

/** A window that applied to a request, as it is after the decision. */
export interface DecidedWindow {
  readonly limit: Limit;
  /** The limit at the instant of the decision; in a degraded decision the replica's share. */
  readonly quota: number;
  /** Units counted in the window. Below 0 after a grant, above `quota` after the limit was lowered or a cost was settled. */
  readonly used: number;
  /** When the window ends; for a window that is not open, when it would end if it opened now. Milliseconds since 1970. */
  readonly resetAtMs: number;
  /** There was no room for the request: an enforced limit rejected it, a shadow limit would have. */
  readonly isExceeded: boolean;
  /** The window is the one that all customers beyond `MAX_CUSTOMER_WINDOWS` share. */
  readonly isShared: boolean;
}

/** What is left in a window, never negative. */
export function remainingIn({ quota, used }: DecidedWindow): number {
  return Math.max(0, quota - used);
}

/** The window that ends last of those that reject the request; undefined if none rejects it. */
export function rejectingWindow(windows: readonly DecidedWindow[]): DecidedWindow | undefined {
  let found: DecidedWindow | undefined;
  for (const window of windows) {
    if (!window.isExceeded || window.limit.mode !== 'enforce') continue;
    if (found === undefined || window.resetAtMs > found.resetAtMs) found = window;
  }
  return found;
}

/** The enforced window with the least remaining, of several the one that ends last; undefined if none is enforced. */
export function tightestWindow(windows: readonly DecidedWindow[]): DecidedWindow | undefined {
  let found: DecidedWindow | undefined;
  for (const window of windows) {
    if (window.limit.mode === 'enforce' && (found === undefined || isTighter(window, found))) found = window;
  }
  return found;
}

function isTighter(window: DecidedWindow, than: DecidedWindow): boolean {
  const difference = remainingIn(window) - remainingIn(than);
  return difference < 0 || (difference === 0 && window.resetAtMs > than.resetAtMs);
}

/** The ids of the shadow limits that would have rejected a request which was allowed. */
export function shadowRejectionsOf(windows: readonly DecidedWindow[]): readonly string[] {
  const first = windows[0];
  // Most plans have one limit, which is enforced.
  if (windows.length === 1 && first?.limit.mode === 'enforce') return NONE;
  return windows
    .filter(({ isExceeded, limit }) => isExceeded && limit.mode === 'shadow')
    .map(({ limit }) => limit.id);
}

const NONE: readonly string[] = [];
