import type { LookupAddress } from 'node:dns';
import type { Clock } from '../../platform/clock.ts';
import { AddressNotAllowed, type AddressPolicy } from './address-policy.ts';
import type { DeliveryFault } from './delivery.ts';

/** A request to an endpoint. */
export interface OutgoingRequest {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What came of a request. */
export interface SendResult {
  /** Null if there was no response in time. */
  readonly responseStatus: number | null;
  /** Null if there was a response. */
  readonly fault: DeliveryFault | null;
  /** The value of `Retry-After`. */
  readonly retryAfter: string | null;
}

/** How long a request may take, from the look-up of the name to the head of the response. Milliseconds. */
const DELIVERY_TIMEOUT_MS = 15_000;
/** The most of a response's body that is read. */
const RESPONSE_BYTES = 4096;
const RESPONSE_HEAD_BYTES = 16_384;
/** Longest time for the body of a response, which no outcome depends on. Milliseconds. */
const RESPONSE_BODY_MS = 2000;

/**
 * Sends requests to endpoints that are not trusted. The addresses of the name are checked and the connection is made to one of these: the
 * name is not looked up a second time. Redirects are not followed, proxies of the environment are not used, responses are not decompressed
 * and hardly read.
 */
export class DeliverySender {
  readonly #policy: AddressPolicy;
  readonly #clock: Clock;
  readonly #timeoutMs: number;

  constructor(policy: AddressPolicy, clock: Clock, timeoutMs = DELIVERY_TIMEOUT_MS) {
    this.#policy = policy;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  /** Never rejects. `signal` ends it early. */
  async send(
    outgoing: OutgoingRequest,
    signal: AbortSignal,
  ): Promise<SendResult & { readonly durationMs: number }> {
    const startedMs = this.#clock.monotonicMs();
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(this.#timeoutMs)]);
    const outcome = await this.#attempt(outgoing, deadline).catch((error: unknown) => ({
      responseStatus: null,
      fault: faultOf(error, deadline),
      retryAfter: null,
    }));
    return { ...outcome, durationMs: Math.round(this.#clock.monotonicMs() - startedMs) };
  }

  async #attempt({ url, headers, body }: OutgoingRequest, signal: AbortSignal): Promise<SendResult> {
    const addresses = await unlessAborted(this.#policy.addressesOf(url), signal);
    // Loaded with the first delivery: most gateways send none.
    const { Agent, request } = await import('undici');
    const agent = new Agent({
      connect: { lookup: lookupOf(addresses), timeout: this.#timeoutMs, autoSelectFamily: true },
      allowH2: false,
      maxHeaderSize: RESPONSE_HEAD_BYTES,
      headersTimeout: this.#timeoutMs,
      bodyTimeout: this.#timeoutMs,
      pipelining: 0,
    });
    try {
      const sent = request(url, { method: 'POST', headers, body, signal, dispatcher: agent });
      // While undici connects, it does not look at the signal.
      const { statusCode, headers: received, body: response } = await unlessAborted(sent, signal);
      // A proxy of the endpoint may have added one more. undici keeps the blanks after a value.
      const [retryAfter] = [received['retry-after']].flat();
      await skim(response);
      return { responseStatus: statusCode, fault: null, retryAfter: retryAfter?.trim() ?? null };
    } finally {
      await agent.destroy();
    }
  }
}

/** Gives the checked addresses to a connector, whatever name it asks for. With `autoSelectFamily` it takes all of them. */
function lookupOf(addresses: readonly LookupAddress[]) {
  return (_name: string, _options: unknown, done: (error: null, found: LookupAddress[]) => void): void => {
    done(null, [...addresses]);
  };
}

/** Reads a part of the body, so that an endpoint which responds quickly sees no broken connection. A failure here changes nothing. */
async function skim(response: AsyncIterable<Buffer> & { destroy(): unknown }): Promise<void> {
  const timer = setTimeout(() => response.destroy(), RESPONSE_BODY_MS);
  try {
    let bytes = 0;
    for await (const chunk of response) {
      bytes += chunk.length;
      if (bytes >= RESPONSE_BYTES) break;
    }
  } catch {
    // The status is what counts.
  } finally {
    clearTimeout(timer);
  }
}

/** The promise, but no longer than until the signal. */
function unlessAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

function faultOf(error: unknown, deadline: AbortSignal): DeliveryFault {
  if (error instanceof AddressNotAllowed) return 'address_not_allowed';
  if (deadline.aborted) return 'timeout';
  const code = codeOf(error);
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'name_not_found';
  if (code === 'UND_ERR_INVALID_ARG') return 'invalid_request';
  return code.includes('TIMEOUT') ? 'timeout' : 'connection_failed';
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
