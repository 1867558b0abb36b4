/** What stops each thing that was started, in the order of the starts. */
export type Stops = (() => Promise<unknown>)[];

/** Stops what was started, the last one first. */
export async function stopAll(stops: Stops): Promise<void> {
  for (const stop of stops.splice(0).reverse()) await stop();
}

/** Starts several things. When one can't be started, those before it are stopped again. */
export async function startTogether<Started>(
  start: (stops: Stops) => Promise<Started>,
): Promise<Started & { stop(): Promise<void> }> {
  const stops: Stops = [];
  const stop = () => stopAll(stops);
  try {
    return { ...(await start(stops)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Lets SIGINT and SIGTERM stop what was started, before they end this process. */
export function stopAtSignals(stop: () => Promise<unknown>): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void stop().finally(() => process.exit(1)));
  }
}
