import type { UsageRecorder } from '../usage/usage.ts';
import type { Exchange, Step } from './exchange.ts';

/** Where the statistics of a key go, and who its customer is. */
export interface RecordOptions {
  readonly usage: UsageRecorder;
  /** Name of the request field that names the customer, lower case. */
  readonly customerIdHeader: string;
}

const CUSTOMER_ID = /^[\x20-\x7e]{1,128}$/;
const NO_CUSTOMER = 'anonymous';

/**
 * Sees to it that an authenticated request is recorded exactly once, when its answer is over, however it ended. It subscribes before
 * anything is forwarded; a request whose client has left already is recorded at once.
 */
export function record({ usage, customerIdHeader }: RecordOptions): Step {
  function take(exchange: Exchange): void {
    if (exchange.entry === undefined) return;
    const forwarded = exchange.forwardedAtMs !== null;
    usage.record({
      keyId: exchange.entry.grant.keyId,
      endpoint: exchange.head.path,
      customerId: customerOf(exchange.req.headers[customerIdHeader]),
      successful: isSuccessful(exchange),
      forwardedMs: forwarded ? exchange.closedAtMs - exchange.startedAtMs : null,
    });
  }

  return (exchange) => {
    if (exchange.isClosed) take(exchange);
    else exchange.onClosed = take;
    exchange.next();
  };
}

/** Below 400 and fully sent; a switched connection has its whole answer. */
function isSuccessful({ res, isSwitched }: Exchange): boolean {
  return isSwitched || (res.statusCode < 400 && res.writableFinished);
}

function customerOf(value: string | string[] | undefined): string {
  return typeof value === 'string' && CUSTOMER_ID.test(value) ? value : NO_CUSTOMER;
}
