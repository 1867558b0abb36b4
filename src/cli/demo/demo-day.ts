import type { DemoClock } from './demo-clock.ts';
import { type Consumer, type DemoTarget, sendRequest } from './demo-traffic.ts';

const HOUR_MS = 3_600_000;
/** Not quite a day, so that charts of the last 24 hours show all of it. */
export const PAST_MS = 23 * HOUR_MS;
const STEP_MS = HOUR_MS / 10;

/**
 * Sends the requests of the last 23 hours as fast as the gateway responds, while the gateway's clock is put forward to the present. This
 * fills charts of hours. Ends early when it is stopped.
 */
export async function liveThroughDay(
  { url, stopping }: DemoTarget,
  consumers: readonly Consumer[],
  clock: DemoClock,
): Promise<void> {
  for (let step = 0; step < PAST_MS / STEP_MS && !stopping.aborted; step += 1) {
    const share = shareOfHour(new Date(clock.nowMs()).getUTCHours());
    await Promise.all(consumers.map((consumer) => sendStep({ url, stopping }, consumer, { step, share })));
    clock.putForward(STEP_MS);
  }
}

/** The share is larger in the afternoon than at night. */
function shareOfHour(hour: number): number {
  return 1 + 0.6 * Math.sin(((hour - 8) / 24) * 2 * Math.PI);
}

async function sendStep(
  { url, stopping }: DemoTarget,
  { secret, requests, past }: Consumer,
  { step, share }: { readonly step: number; readonly share: number },
): Promise<void> {
  if (past === undefined || step % past.everySteps !== 0) return;
  const count = Math.round(past.requests * share);
  const turns = Array.from({ length: count }, (_, sent) => requests[(step + sent) % requests.length]);
  await Promise.all(turns.map((request) => request && sendRequest({ url, stopping }, secret, request)));
}
