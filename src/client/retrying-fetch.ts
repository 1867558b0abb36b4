import { newIdempotencyKey } from './idempotency-key.ts';
import { timedFetch } from './timed-fetch.ts';

export interface RetryOptions {
  /** How often a request is retried at most; 0 for never. */
  readonly retries?: number;
  /** After which statuses a GET is retried; 429, 502, 503 and 504 by default. */
  readonly retriedGetStatuses?: readonly number[];
  /** With a longer wait the response is returned, or the error thrown, instead of retrying. Milliseconds. */
  readonly longestWaitMs?: number;
  /**
   * When a single attempt is given up, and not retried: after so long without the head of a response, or then without a further part of
   * its body, unless that is a stream of events. Milliseconds; in Node `fetch` itself gives up after 300 000.
   */
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
/** Codes of the gateway after which the change may have been made. */
const UNCERTAIN_CODES: readonly string[] = ['store_unavailable', 'idempotency_in_progress'];
/** Codes of connections that were never made, whose TLS failed, or of a request that can't be sent: the gateway has not received it. */
const NOT_SENT =
  /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EPROTO|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT|UND_ERR_INVALID_ARG)$|^ERR_SSL|CERT|SIGNATURE/;
/** Of a request that has what none can carry, such as a control character in a header. */
const UNSENDABLE = 'UND_ERR_INVALID_ARG';
/** Codes of certificates that were not accepted: trying again changes nothing. */
const CERTIFICATE = /CERT|SIGNATURE/;

/** POSTs that can be repeated without a key: the gateway would store their whole responses, which may be long. */
const CHANGES_NOTHING = /\/(?:tollgate\/config\/diff|rate-limit\/[^/]+\/preview)$/;

interface FailedAttempt {
  readonly error: unknown;
  /** The head of a response had come. */
  readonly brokeOff?: true;
}
type Outcome = Response | FailedAttempt;

/**
 * `fetch` that retries where that is safe, after the wait of `Retry-After`, or a quarter of a second that doubles. A POST that changes
 * something gets an `Idempotency-Key` that is the same in every attempt, and resolves when its whole response has come: if the connection
 * breaks before, it is retried, and the gateway repeats its response. A certificate that is not accepted ends it at once. A DELETE, or a
 * PUT or PATCH with a precondition, that may have been carried out is not retried, because a second one would get 404 or 412: its
 * connection broke, a proxy says 502 or 504, or the gateway says 503 `store_unavailable`. If all attempts of a change fail for the moment,
 * the result is that of the last one that may have been carried out, if there is one.
 */
export function retryingFetch({
  retries = DEFAULT_RETRIES,
  retriedGetStatuses = TEMPORARY,
  longestWaitMs = LONGEST_WAIT_MS,
  timeoutMs = TIMEOUT_MS,
  onWait = () => {},
}: RetryOptions = {}): (request: Request) => Promise<Response> {
  return async (request) => {
    if (
      request.method === 'POST' &&
      !request.headers.has('Idempotency-Key') &&
      !CHANGES_NOTHING.test(request.url)
    )
      request.headers.set('Idempotency-Key', newIdempotencyKey());
    let lost: Outcome | undefined;
    for (let attempt = 0; ; attempt += 1) {
      const outcome = await send(request, timeoutMs);
      if (await mayBeCarriedOut(request, outcome)) lost = outcome;
      const reason = await reasonToRetry(request, outcome, retriedGetStatuses);
      const waitMs = retryAfterMs(outcome) ?? FIRST_WAIT_MS * 2 ** attempt;
      if (reason === undefined || attempt >= retries || waitMs > longestWaitMs)
        return resultOf(outcome, lost, reason);
      onWait(reason, waitMs);
      if (outcome !== lost && outcome instanceof Response) await outcome.body?.cancel();
      await pause(waitMs, request.signal);
    }
  };
}

function resultOf(outcome: Outcome, lost: Outcome | undefined, reason: string | undefined): Response {
  // A response after which nothing is retried says what became of the request. Another one may be about the last attempt only.
  const isFinal = outcome instanceof Response && reason === undefined;
  const result = isFinal ? outcome : (lost ?? outcome);
  if (result instanceof Response) return result;
  throw result.error;
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

async function send(request: Request, timeoutMs: number): Promise<Outcome> {
  try {
    const attempt = new AbortController();
    const response = await timedFetch(request, timeoutMs, attempt);
    return request.method === 'POST' ? await completed(response, attempt.signal) : response;
  } catch (error) {
    return { error };
  }
}

/** The response when all of its body has come, or how it broke off. Rejects if it was given up. */
async function completed(response: Response, signal: AbortSignal): Promise<Outcome> {
  const { body, status, statusText, headers } = response;
  try {
    return new Response(body === null ? null : await response.arrayBuffer(), { status, statusText, headers });
  } catch (error) {
    if (signal.aborted) throw error;
    return { error, brokeOff: true };
  }
}

/** Whether the gateway may have received, and carried out, a request that ended with this error. */
export function mayBeReceived(error: unknown): boolean {
  const code = codeOf(error);
  // A TypeError without a code is about the request itself, such as its port, or about a redirect.
  return code === undefined ? !(error instanceof TypeError) : !NOT_SENT.test(code);
}

/** Whether the certificate of the gateway was not accepted. */
export function isCertificateFault(error: unknown): boolean {
  return CERTIFICATE.test(codeOf(error) ?? '');
}

/** The system's code of an error of `fetch`, which is that of its cause. */
function codeOf(error: unknown): string | undefined {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause ? String(cause.code) : undefined;
}

async function reasonToRetry(
  request: Request,
  outcome: Outcome,
  retriedGetStatuses: readonly number[],
): Promise<string | undefined> {
  if (outcome instanceof Response) {
    // 409 with Retry-After: an earlier attempt of this request is still running.
    const { status, headers } = outcome;
    if (failsIfRepeated(request) && (await mayBeCarriedOut(request, outcome))) return undefined;
    const temporary = request.method === 'GET' ? retriedGetStatuses : TEMPORARY;
    const isTemporary = temporary.includes(status) || (status === 409 && headers.has('retry-after'));
    return isTemporary ? `the gateway responded with ${status}` : undefined;
  }
  if (outcome.brokeOff) return 'the response broke off';
  const code = codeOf(outcome.error);
  if (isCertificateFault(outcome.error) || code === UNSENDABLE) return undefined;
  return failsIfRepeated(request) && mayBeReceived(outcome.error) ? undefined : code;
}

/** Whether the request would be rejected if it had been carried out before. */
function failsIfRepeated({ method, headers }: Request): boolean {
  if (method === 'PUT' || method === 'PATCH') return headers.has('If-Match') || headers.has('If-None-Match');
  return method === 'DELETE';
}

/** Whether this outcome leaves open that the request made its change. The body of a response can still be read. */
async function mayBeCarriedOut({ method }: Request, outcome: Outcome): Promise<boolean> {
  if (method === 'GET') return false;
  if (!(outcome instanceof Response)) return outcome.brokeOff === true || mayBeReceived(outcome.error);
  if (outcome.status !== 409 && outcome.status !== 503) return isUncertain(outcome.status, '');
  const fault: unknown = await outcome
    .clone()
    .json()
    .catch(() => undefined);
  const hasCode = typeof fault === 'object' && fault !== null && 'code' in fault;
  return hasCode && isUncertain(outcome.status, fault.code);
}

/** Whether a response with this status and code leaves open that the request was carried out. */
export function isUncertain(status: number, code: unknown): boolean {
  return UNCERTAIN.includes(status) || (typeof code === 'string' && UNCERTAIN_CODES.includes(code));
}

function retryAfterMs(outcome: Outcome): number | undefined {
  if (!(outcome instanceof Response)) return undefined;
  const header = outcome.headers.get('retry-after') ?? '';
  return /^\d+$/.test(header) ? Number(header) * 1000 : undefined;
}
