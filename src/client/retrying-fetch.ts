export interface RetryOptions {
  /** How often a request is retried at most; 0 for never. */
  readonly retries?: number;
  /** With a longer wait the response is returned, or the error thrown, instead of retrying. Milliseconds. */
  readonly longestWaitMs?: number;
  /** When a single attempt is given up. Milliseconds. */
  readonly timeoutMs?: number;
  /** Called before each wait, to explain it to a person. */
  readonly onWait?: (reason: string, waitMs: number) => void;
}

/** How often a request is retried by default. */
export const DEFAULT_RETRIES = 3;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 10_000;
const TIMEOUT_MS = 60_000;
/** Statuses with which the same request may succeed a little later. */
const TEMPORARY: readonly number[] = [429, 502, 503, 504];
/** Those that come from in front of the gateway, which may have carried the request out. */
const UNCERTAIN: readonly number[] = [502, 504];

/**
 * `fetch` that retries where that is safe, after the wait of `Retry-After`, or a quarter of a second that doubles. A POST gets an `Idempotency-Key` that is the same in every attempt. A DELETE that may have been
 * carried out is not retried, because a second one would get 404: its connection broke, or a proxy says 502 or 504.
 */
export function retryingFetch({
  retries = DEFAULT_RETRIES,
  longestWaitMs = LONGEST_WAIT_MS,
  timeoutMs = TIMEOUT_MS,
  onWait = () => {},
}: RetryOptions = {}): (request: Request) => Promise<Response> {
  return async (request) => {
    if (request.method === 'POST' && !request.headers.has('Idempotency-Key'))
      request.headers.set('Idempotency-Key', newIdempotencyKey());
    for (let attempt = 0; ; attempt += 1) {
      const outcome = await send(request.clone(), timeoutMs);
      const reason = reasonToRetry(request.method, outcome);
      const waitMs = retryAfterMs(outcome) ?? FIRST_WAIT_MS * 2 ** attempt;
      if (reason === undefined || attempt >= retries || waitMs > longestWaitMs) {
        if (outcome instanceof Response) return outcome;
        throw outcome.error;
      }
      onWait(reason, waitMs);
      if (outcome instanceof Response) await outcome.body?.cancel();
      await pause(waitMs, request.signal);
    }
  };
}

/** 16 random bytes in hexadecimal digits. */
function newIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Waits, and rejects at once if the request is aborted. */
function pause(waitMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort);
      resolve();
    }, waitMs);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
}

async function send(request: Request, timeoutMs: number): Promise<Response | { readonly error: unknown }> {
  try {
    const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]);
    return await fetch(request, { signal });
  } catch (error) {
    return { error };
  }
}

function reasonToRetry(method: string, outcome: Response | { readonly error: unknown }): string | undefined {
  if (outcome instanceof Response) {
    // 409 with Retry-After: an earlier attempt of this request is still running.
    const { status, headers } = outcome;
    if (method === 'DELETE' && UNCERTAIN.includes(status)) return undefined;
    const isTemporary = TEMPORARY.includes(status) || (status === 409 && headers.has('retry-after'));
    return isTemporary ? `the gateway responded with ${status}` : undefined;
  }
  const cause = outcome.error instanceof Error ? outcome.error.cause : undefined;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : undefined;
  if (code === undefined) return undefined;
  return method !== 'DELETE' || code === 'ECONNREFUSED' ? code : undefined;
}

function retryAfterMs(outcome: Response | { readonly error: unknown }): number | undefined {
  if (!(outcome instanceof Response)) return undefined;
  const header = outcome.headers.get('retry-after') ?? '';
  return /^\d+$/.test(header) ? Number(header) * 1000 : undefined;
}
