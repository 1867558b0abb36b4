import { setTimeout as pause } from 'node:timers/promises';

export interface TrafficRequest {
  /** GET where it is missing. */
  readonly method?: 'GET' | 'POST';
  readonly path: string;
  /** Sent as `X-Customer-Id`. */
  readonly customer?: string;
}

/** Sends its requests in turn, one at a time, with a pause after each. */
export interface Consumer {
  readonly secret: string;
  /** Sent once, without pauses, before the others. */
  readonly first?: readonly TrafficRequest[];
  readonly requests: readonly TrafficRequest[];
  readonly pauseMs: number;
}

const REQUEST_TIMEOUT_MS = 10_000;

/** Sends the requests of consumers until it is stopped: as many at once as there are consumers, never more. */
export function startTraffic(
  url: string,
  consumers: readonly Consumer[],
): { /** Resolves when no request is under way any more. */ stop(): Promise<void> } {
  const stopping = new AbortController();
  const running = consumers.map((consumer) => send(url, consumer, stopping.signal));
  return {
    stop: async () => {
      stopping.abort();
      await Promise.all(running);
    },
  };
}

async function send(url: string, { secret, first = [], requests, pauseMs }: Consumer, stopping: AbortSignal) {
  try {
    for (const request of first) await sendOne(url, secret, request, stopping);
    for (let turn = 0; ; turn += 1) {
      const request = requests[turn % requests.length];
      if (request !== undefined) await sendOne(url, secret, request, stopping);
      await pause(pauseMs, undefined, { signal: stopping });
    }
  } catch (error) {
    if (!stopping.aborted) throw error;
  }
}

async function sendOne(url: string, secret: string, request: TrafficRequest, stopping: AbortSignal) {
  const { method = 'GET', path, customer } = request;
  try {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${secret}`,
        ...(customer !== undefined && { 'x-customer-id': customer }),
      },
      signal: AbortSignal.any([stopping, AbortSignal.timeout(REQUEST_TIMEOUT_MS)]),
    });
    await response.arrayBuffer();
  } catch {
    // A machine that slept, or the stop: the loop goes on with the next request, or ends at its pause.
    stopping.throwIfAborted();
  }
}
