import { parsePeriod, windowEndMs } from '../../../../src/limiter/period.ts';

export const NOW_MS = Date.UTC(2100, 0, 31, 10, 20, 30, 456);
export const VERSION = '3.5';
/** The latest end that a window can have. */
export const LATEST_END_MS = NOW_MS + 366 * 86_400_000;
export const KEPT_MS = 5_000_000;
/** Of each token that the tests use, a period as people write it. */
export const PERIODS = {
  '3600000': '1 hour',
  '86400000': '1 day',
  '1mo': '1 month',
  '12mo': '1 year',
} as const;
export type Token = keyof typeof PERIODS;

/** A key of Redis: its text, and the instant of its expiry, if it has one. */
export interface Held {
  readonly text: string;
  readonly endsAtMs?: number;
}

/** A limit in the words of the script. */
export interface ScriptLimit {
  readonly token: Token;
  /** What applies until an instant, and from it on. */
  readonly limit: number | readonly [number, number, number];
  readonly isShadow: boolean;
  readonly isForCustomers: boolean;
}

export interface ScriptDecision {
  readonly untilMs: number;
  readonly isFresh: boolean;
  readonly cost: number;
  /** One limit, enforced for the key, has a form without a cost: its fractions of counts are compared in another way. */
  readonly form: 'none' | 'single' | 'plain' | 'any';
  readonly limits: readonly ScriptLimit[];
  readonly version: Held | undefined;
  /** Of each limit: the window of the key or of the customer. */
  readonly windows: readonly (Held | undefined)[];
}

export interface Decided {
  readonly reply: string;
  readonly version: Held | undefined;
  readonly windows: readonly (Held | undefined)[];
}

/** What the script must make of a decision, as simply as it can be said. */
export function modelOf(decision: ScriptDecision): Decided {
  const { untilMs, isFresh, version, windows, limits, cost } = decision;
  if (NOW_MS >= untilMs) return { reply: '4', version, windows };
  const known = version?.text.split(' ')[0];
  if (known === '-') {
    const kept = version && isFresh ? { endsAtMs: KEPT_MS, ...version } : version;
    return { reply: '0', version: kept, windows };
  }
  if (known !== VERSION && !isFresh) return { reply: '0', version, windows };
  const isInstalled = isFresh && (known === undefined || isOlder(known));
  const current = isInstalled ? { text: VERSION, endsAtMs: KEPT_MS } : version;
  if (decision.form === 'none') return { reply: '3', version: current, windows };

  const open = limits.map(({ token }, index) => openWindow(windows[index], token));
  const full = limits.map((limit, index) => isFull(decision, limit, open[index]?.count ?? 0));
  const isLimited = limits.some(({ isShadow }, index) => full[index] && !isShadow);
  const after = limits.map(({ token }, index): Held | undefined => {
    const window = open[index];
    if (isLimited || full[index] || cost === 0) return window?.held ?? windows[index];
    const endsAtMs = window?.endsAtMs ?? endOf(token);
    return {
      text: String(window === undefined || !Number.isInteger(window.count) ? cost : window.count + cost),
      endsAtMs,
    };
  });
  const isCounted = (index: number) => !isLimited && !full[index] && cost > 0;
  const numbers = limits.map((_, index) => {
    if (isCounted(index)) return `${after[index]?.text} ${after[index]?.endsAtMs}`;
    return `${Math.trunc(open[index]?.count ?? 0)} ${open[index]?.endsAtMs ?? -1}`;
  });
  const flags = full.reduce((sum, isSet, index) => sum + (isSet ? 2 ** index : 0), 0);
  return {
    reply: [isLimited ? '2' : '1', flags, ...numbers].join(' '),
    version: isLimited && !isFresh ? noted(current) : current,
    windows: after,
  };
}

function isOlder(known: string): boolean {
  const [key, plan] = known.split('.').map(Number);
  const [ours, oursOfPlan] = VERSION.split('.').map(Number);
  if (key === undefined || plan === undefined || ours === undefined || oursOfPlan === undefined) return false;
  return key === ours ? plan < oursOfPlan : key < ours;
}

function endOf(token: Token): number {
  const period = parsePeriod(PERIODS[token]);
  if (period === undefined) throw new Error(`no period: ${token}`);
  return windowEndMs(NOW_MS, period);
}

/** Undefined for a window that has no count or has ended. One without an end that can be gets it again. */
function openWindow(window: Held | undefined, token: Token) {
  const count = Number(window?.text);
  if (window === undefined || Number.isNaN(count)) return undefined;
  const { endsAtMs: heldEndMs } = window;
  const endsAtMs = heldEndMs === undefined || heldEndMs > LATEST_END_MS ? endOf(token) : heldEndMs;
  return endsAtMs <= NOW_MS ? undefined : { count, endsAtMs, held: { ...window, endsAtMs } };
}

function isFull({ form, cost }: ScriptDecision, { limit }: ScriptLimit, count: number): boolean {
  const most = typeof limit === 'number' ? limit : NOW_MS < limit[1] ? limit[0] : limit[2];
  if (form === 'single') return count > 0 ? count >= most : false;
  return cost > 0 && count + cost > most;
}

/**
 * A rejection may be repeated for a second, and is noted a little longer, so that not each one is noted. What is noted for longer than that is
 * from before the server's clock went back.
 */
function noted(version: Held | undefined): Held | undefined {
  const until = Number(version?.text.split(' ')[1] ?? 0);
  return until >= NOW_MS + 1000 && until <= NOW_MS + 1100
    ? version
    : { ...version, text: `${VERSION} ${NOW_MS + 1100}` };
}
