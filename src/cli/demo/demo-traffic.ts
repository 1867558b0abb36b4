import { setTimeout as pause } from 'node:timers/promises';

export interface TrafficRequest {
  /** GET by default. */
  readonly method?: 'GET' | 'POST';
  readonly path: string;
  /** Sent as `X-Customer-Id`. */
  readonly customer?: string;
}

/** A consumer that sends its requests in turn, one at a time, with a pause after each. */
export interface Consumer {
  readonly secret: string;
  /** Requests that are sent once, without pauses, before the others. */
  readonly first?: readonly TrafficRequest[];
  readonly requests: readonly TrafficRequest[];
  readonly pauseMs: number;
  /** Its traffic on the day before: about `requests` once in `everySteps` steps of six minutes. */
  readonly past?: { readonly everySteps: number; readonly requests: number };
}

const REQUEST_TIMEOUT_MS = 10_000;

/** Sends the consumers' requests until it is stopped, with at most one request at a time for each consumer. */
export function startTraffic(
  url: string,
  consumers: readonly Consumer[],
): { /** Resolves when no request is under way any more. */ stop(): Promise<void> } {
  const stopping = new AbortController();
  const running = consumers.map((consumer) => sendInTurn(url, consumer, stopping.signal));
  return {
    stop: async () => {
      stopping.abort();
      await Promise.all(running);
    },
  };
}

/** The gateway that the requests go to, until `stopping` aborts. */
export interface DemoTarget {
  readonly url: string;
  readonly stopping: AbortSignal;
}

async function sendInTurn(
  url: string,
  { secret, first = [], requests, pauseMs }: Consumer,
  stopping: AbortSignal,
) {
  try {
    for (const request of first) await sendRequest({ url, stopping }, secret, request);
    for (let turn = 0; ; turn += 1) {
      const request = requests[turn % requests.length];
      if (request !== undefined) await sendRequest({ url, stopping }, secret, request);
      await pause(pauseMs, undefined, { signal: stopping });
    }
  } catch (error) {
    if (!stopping.aborted) throw error;
  }
}

/** Sends one request and reads its response to the end. Never rejects. */
export async function sendRequest(
  { url, stopping }: DemoTarget,
  secret: string,
  { method = 'GET', path, customer }: TrafficRequest,
): Promise<void> {
  const timeout = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
  try {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${secret}`,
        ...(customer !== undefined && { 'x-customer-id': customer }),
      },
      signal: AbortSignal.any([stopping, timeout]),
    });
    await response.arrayBuffer();
  } catch {
    // It was stopped, or failed, as by a timeout after the machine slept: the next request follows.
  }
}
