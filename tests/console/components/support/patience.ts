import { configure, waitFor } from '@testing-library/react';

/** How long `findBy` and `waitFor` wait: not one second as usual, but as long as `until`, because a busy machine takes its time. Milliseconds. */
configure({ asyncUtilTimeout: 240_000 });

const { now } = Date;
let aheadMs = 0;
Date.now = () => now() + aheadMs;

/** The tab comes into view, so much later than the last time that the page reads again what it shows. */
export function lookAgain(): void {
  aheadMs += 5000;
  window.dispatchEvent(new Event('visibilitychange'));
}

/** Waits until the page has asked several times for one of `asked`: it has gone on after the first response. */
export async function untilAskedAgain(asked: string[], what: string): Promise<void> {
  asked.length = 0;
  await waitFor(() => {
    lookAgain();
    if (asked.filter((each) => each === what).length < 5) throw new Error(`${what} was not asked for again`);
  });
}
