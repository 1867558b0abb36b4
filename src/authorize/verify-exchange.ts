import type { IncomingMessage } from 'node:http';
import { writtenAddress } from '../http/client-address.ts';
import type { ErrorResponse } from '../http/errors/error-responses.ts';
import type { RawHeadResponse } from '../http/node-internals.ts';
import type { ParsedRequest, RequestTarget } from '../http/parsed-request.ts';
import type { VerifiedRequest } from '../keys/key-verifier.ts';
import type { RequestCost, RequestLimits } from '../limiter/request-limits.ts';
import type { Outcome } from '../observability/outcomes.ts';
import { type EmptyResponse, Exchange, type Step } from '../proxy/exchange.ts';

/** How a verified request is made an exchange. */
export interface VerifyBegin {
  readonly request: VerifiedRequest;
  readonly target: RequestTarget;
  /** Lower case. */
  readonly customerIdHeader: string;
  readonly startedAtMs: number;
  /** Called once, when the request is decided. */
  readonly decided: (exchange: VerifyExchange, response: ErrorResponse | undefined) => void;
}

/** There is no client to respond to: every method that would use the response is overridden. */
const NO_RESPONSE = Object.freeze({}) as RawHeadResponse;

/** A request that a service describes, on its way through the steps of a proxied request. The response is a verdict. */
export class VerifyExchange extends Exchange {
  readonly #cost: number | undefined;
  readonly #decided: VerifyBegin['decided'];
  #status = 0;

  constructor(steps: readonly Step[], begin: VerifyBegin) {
    const { request, target, startedAtMs, decided } = begin;
    super(steps, {
      req: requestOf(begin),
      res: NO_RESPONSE,
      head: { ...target, ...NO_BODY },
      requestId: '',
      startedAtMs,
    });
    this.#cost = request.cost;
    this.#decided = decided;
    // The responses to pages are those of the service.
    this.isOriginAllowed = true;
  }

  override get status(): number {
    return this.#status;
  }

  override get isSent(): boolean {
    return true;
  }

  override get hasResponse(): boolean {
    return this.#status !== 0;
  }

  override costIn(limits: RequestLimits | null, others: readonly string[]): RequestCost {
    return this.#cost === undefined ? super.costIn(limits, others) : { units: this.#cost, isReported: false };
  }

  override respondWith(response: ErrorResponse, outcome: Outcome): void {
    if (this.hasResponse) return;
    this.#status = response.status;
    this.outcome = outcome;
    this.#decided(this, response);
  }

  override respondEmpty({ status, outcome }: EmptyResponse): void {
    if (this.hasResponse) return;
    this.#status = status;
    this.outcome = outcome;
    this.#decided(this, undefined);
  }

  override cut(): void {}
}

const NO_BODY: Pick<ParsedRequest, 'host' | 'body' | 'expectsContinue'> = {
  host: undefined,
  body: 'none',
  expectsContinue: false,
};

/** The steps that decide read the method, these headers and the peer's address of a request, and no more. */
function requestOf({ request, customerIdHeader }: VerifyBegin): IncomingMessage {
  const { secret, method = 'GET', customerId, address = '', origin } = request;
  const headers = {
    authorization: `Bearer ${secret}`,
    ...(origin !== undefined && { origin }),
    ...(customerId !== undefined && { [customerIdHeader]: customerId }),
  };
  return {
    method,
    headers,
    rawHeaders: [],
    socket: { remoteAddress: writtenAddress(address) },
  } as unknown as IncomingMessage;
}
