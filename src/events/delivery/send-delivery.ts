import type { LookupAddress } from 'node:dns';
import {
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingMessage,
  request as requestHttp,
} from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { Clock } from '../../platform/clock.ts';
import { systemCodeOf } from '../../platform/system-code.ts';
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

const CONNECTIONS = {
  /** Each request is made to an address that was checked for it. */
  keepAlive: false,
  /** How long one address of several is tried before the next one: a lost packet is sent again after a second. Milliseconds. */
  autoSelectFamilyAttemptTimeout: 2500,
} as const;
/** How long a request may take, from the look-up of the name to the head of the response. Milliseconds. */
const DELIVERY_TIMEOUT_MS = 15_000;
/** The most of a response's body that is read. */
const RESPONSE_BYTES = 4096;
const RESPONSE_HEAD_BYTES = 16_384;
/** An endpoint that sends more of them before its response only keeps the gateway busy. */
const MOST_INTERIM_RESPONSES = 32;
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
  // Not the agents that all share, which may use a proxy. That of HTTPS keeps TLS sessions: the next connection needs no full handshake.
  readonly #http = new HttpAgent(CONNECTIONS);
  readonly #https = new HttpsAgent(CONNECTIONS);

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
    const isHttps = url.protocol === 'https:';
    const request = (isHttps ? requestHttps : requestHttp)(url, {
      method: 'POST',
      headers,
      signal,
      agent: isHttps ? this.#https : this.#http,
      lookup: lookupOf(addresses),
      maxHeaderSize: RESPONSE_HEAD_BYTES,
      // Takes what most clients take, such as lines without CR: nothing else follows on the connection. It also checks less of what is sent, of
      // which the interface has checked all.
      insecureHTTPParser: true,
    });
    try {
      request.end(body);
      const response = await responseTo(request);
      await skim(response);
      const { statusCode = null, headers: received } = response;
      return { responseStatus: statusCode, fault: null, retryAfter: received['retry-after'] ?? null };
    } finally {
      request.destroy();
    }
  }
}

/** The final response: interim ones are skipped, RFC 9110 section 15.2. Rejects if the connection closes before it. */
export function responseTo(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.on('error', reject).once('response', resolve);
    let interim = 0;
    request.on('information', () => {
      interim += 1;
      if (interim > MOST_INTERIM_RESPONSES) request.destroy();
    });
    // Without an error where the endpoint changes the protocol, which no request here wants.
    request.once('close', () => reject(new Error('The connection closed before a response.')));
  });
}

/** Gives the checked addresses to a connection, whatever name it asks for. */
function lookupOf(addresses: readonly LookupAddress[]): LookupFunction {
  return (_name, { all }, done) => {
    const [first] = addresses;
    if (all) done(null, [...addresses]);
    else done(null, first?.address ?? '', first?.family);
  };
}

/** Reads a part of the body, so that an endpoint which responds quickly sees no broken connection. A failure here changes nothing. */
async function skim(response: IncomingMessage): Promise<void> {
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
  const code = systemCodeOf(error);
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'name_not_found';
  if (code === 'ERR_INVALID_CHAR' || code === 'ERR_INVALID_HTTP_TOKEN') return 'invalid_request';
  return code === 'ETIMEOUT' ? 'timeout' : 'connection_failed';
}
