import type { Limit } from './limit.ts';

/** One of the windows that a request met, after the decision about it. */
export interface DecidedWindow {
  readonly limit: Limit;
  /** The limit that held at that instant; in a degraded decision the replica's share of it. */
  readonly quota: number;
  /** Counted in the window, below 0 after more room was given; above `quota` after a limit was lowered or a cost settled. */
  readonly used: number;
  /** When the window ends; of one that is not open, when it would end if it opened now. Milliseconds since 1970. */
  readonly resetAtMs: number;
  /** There was no room for the request: an enforced limit rejected it, a shadow limit would have. */
  readonly isExceeded: boolean;
  /** The request's customer shares the window of all customers beyond the bound. */
  readonly isShared: boolean;
}

/** What is left in a window, never negative. */
export function remainingIn({ quota, used }: DecidedWindow): number {
  return Math.max(0, quota - used);
}

/** Of the windows that reject the request the one that ends last; undefined when none does. */
export function rejectingWindow(windows: readonly DecidedWindow[]): DecidedWindow | undefined {
  let found: DecidedWindow | undefined;
  for (const window of windows) {
    if (!window.isExceeded || window.limit.mode !== 'enforce') continue;
    if (found === undefined || window.resetAtMs > found.resetAtMs) found = window;
  }
  return found;
}

/** Of the enforced windows the one with the least left, and of those the one that ends last; undefined when none is enforced. */
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
