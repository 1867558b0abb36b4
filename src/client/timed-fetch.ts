import { abortableFetch } from './abortable-fetch.ts';

/** Timers that are longer end at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * `fetch` that aborts `attempt` with a `TimeoutError` when the head of the response, or a further part of its body, has not come after
 * `timeoutMs`. So a large response may take any time on a slow connection. The time between two reads of the body does not count, and a
 * stream of events may be silent.
 */
export async function timedFetch(
  request: Request,
  timeoutMs: number,
  attempt = new AbortController(),
): Promise<Response> {
  const inTime = async <T>(awaited: Promise<T>): Promise<T> => {
    const giveUp = () => attempt.abort(new DOMException('The operation timed out.', 'TimeoutError'));
    const timer = setTimeout(giveUp, Math.min(timeoutMs, LONGEST_TIMER_MS));
    try {
      return await awaited;
    } finally {
      clearTimeout(timer);
    }
  };
  const response = await inTime(abortableFetch(request, attempt));
  const { body, status, statusText, headers } = response;
  if (body === null || headers.get('content-type')?.startsWith('text/event-stream')) return response;
  const reader = body.getReader();
  const timedBody = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await inTime(reader.read());
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    // Nothing is read ahead.
    { highWaterMark: 0 },
  );
  return new Response(timedBody, { status, statusText, headers });
}
