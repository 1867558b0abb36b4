import { type Decided, type Policy, REGIONS, shareOf, type World } from '../world.ts';

/** A region borrows when it has less left than it used in this time. Longer than a round trip. Milliseconds. */
const AHEAD_MS = 400;
/** The part of what is left that a region lends. */
const LENT = 0.5;
/** How long a request waits for a loan that is under way. Milliseconds. */
const LONGEST_WAIT_MS = 300;
/** After which a loan is taken for lost, and after which a region that had nothing is asked again. Milliseconds. */
const LOAN_TIMEOUT_MS = 1000;

interface Share {
  window: number;
  startedMs: number;
  left: number;
  used: number;
  /** Loans under way, and how many there were: the timeout of an earlier one ends no later one. */
  isBorrowing: boolean;
  loans: number;
  /** When each region may be asked again. */
  readonly askAgainMs: number[];
  waiting: Decided[];
}

/**
 * Every region starts a window with a third of the limit, and borrows from the others before it has used that up. A loan is taken from
 * one before it is given to the other, and is of one window: nothing that is lost or late allows a request beyond the limit.
 */
export function borrowing(world: World): Policy {
  return new Borrowing(world);
}

class Borrowing implements Policy {
  readonly #world: World;
  readonly #shares: readonly Share[];

  constructor(world: World) {
    this.#world = world;
    this.#shares = REGIONS.map((_, region) => ({
      window: 0,
      startedMs: 0,
      left: shareOf(world.scenario.limit, region),
      used: 0,
      isBorrowing: false,
      loans: 0,
      askAgainMs: REGIONS.map(() => 0),
      waiting: [],
    }));
  }

  decide(region: number, decided: Decided): void {
    const share = this.#current(region);
    if (share.left > 0) {
      this.#use(share);
      decided(true, share.window);
    } else {
      this.#wait(region, share, decided);
    }
    this.#borrowAhead(region, share);
    if (share.left === 0 && !share.isBorrowing) this.#rejectWaiting(share);
  }

  #use(share: Share): void {
    share.left -= 1;
    share.used += 1;
  }

  #wait(region: number, share: Share, decided: Decided): void {
    share.waiting.push(decided);
    this.#world.timeline.after(LONGEST_WAIT_MS, () => {
      if (!share.waiting.includes(decided)) return;
      share.waiting = share.waiting.filter((other) => other !== decided);
      decided(false, this.#world.windowOf(region));
    });
  }

  #borrowAhead(region: number, share: Share): void {
    const elapsedMs = Math.max(1, this.#world.timeline.nowMs - share.startedMs);
    const soon = (share.used / elapsedMs) * AHEAD_MS;
    if (share.isBorrowing || share.left > soon) return;
    const lender = this.#lenderFor(region, share);
    if (lender !== undefined) this.#borrow(region, share, lender);
  }

  /** The next region that may have something left. */
  #lenderFor(region: number, share: Share): number | undefined {
    const { nowMs } = this.#world.timeline;
    const others = [...REGIONS.keys()].filter((other) => other !== region);
    return others
      .filter((other) => (share.askAgainMs[other] ?? 0) <= nowMs)
      .toSorted((one, other) => (share.askAgainMs[one] ?? 0) - (share.askAgainMs[other] ?? 0))[0];
  }

  #borrow(region: number, share: Share, lender: number): void {
    const { timeline } = this.#world;
    const { window } = share;
    share.loans += 1;
    const loan = share.loans;
    share.isBorrowing = true;
    share.askAgainMs[lender] = timeline.nowMs + LOAN_TIMEOUT_MS;
    const end = (units: number): void => {
      // The units of a loan that comes in a later window, or after it was taken for lost, are lost: they allow nothing.
      const current = this.#current(region);
      if (current.window !== window || current.loans !== loan || !current.isBorrowing) return;
      current.isBorrowing = false;
      current.left += units;
      if (units > 0) current.askAgainMs[lender] = 0;
      this.#serveWaiting(region, current);
    };
    timeline.after(LOAN_TIMEOUT_MS, () => end(0));
    this.#world.send(region, lender, () => {
      const units = this.#lend(lender, window);
      this.#world.send(lender, region, () => end(units));
    });
  }

  #lend(lender: number, window: number): number {
    const share = this.#current(lender);
    if (share.window !== window) return 0;
    const units = Math.floor(share.left * LENT);
    share.left -= units;
    return units;
  }

  #serveWaiting(region: number, share: Share): void {
    while (share.left > 0) {
      const decided = share.waiting.shift();
      if (decided === undefined) break;
      this.#use(share);
      decided(true, share.window);
    }
    if (share.waiting.length > 0) this.#borrowAhead(region, share);
    if (!share.isBorrowing) this.#rejectWaiting(share);
  }

  #rejectWaiting(share: Share): void {
    for (const decided of share.waiting.splice(0)) decided(false, share.window);
  }

  #current(region: number): Share {
    const share = this.#shares[region];
    if (share === undefined) throw new Error(`no region ${region}`);
    const window = this.#world.windowOf(region);
    if (share.window !== window) {
      share.window = window;
      share.startedMs = this.#world.timeline.nowMs;
      share.left = shareOf(this.#world.scenario.limit, region);
      share.used = 0;
      share.isBorrowing = false;
      share.askAgainMs.fill(0);
      const waiting = share.waiting.splice(0);
      for (const decided of waiting) this.decide(region, decided);
    }
    return share;
  }
}
