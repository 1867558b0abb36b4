import type { BlockList } from 'node:net';
import type { TollgateError } from '../../errors.ts';
import type { KeyEntry } from '../../keys/cache/key-entry.ts';
import type { RequestSource } from '../../keys/key-restrictions.ts';
import { outcomeOfError } from '../../observability/outcomes.ts';
import type { Exchange } from '../exchange.ts';
import type { KeyUse } from '../key-uses.ts';
import { sourceOf } from '../steps/authenticate.ts';

/** How long a response lasts before it counts as a long one. Milliseconds. */
export const LONG_MS = 1000;

/** A response that is still arriving after `LONG_MS`, such as a stream of events or a download. It is cut when its key may no longer be used. */
export class LongResponse implements KeyUse {
  /** Not that of the exchange, which is recorded with the plan by which it was decided. */
  entry: KeyEntry;
  readonly source: RequestSource;
  readonly #exchange: Exchange;

  constructor(exchange: Exchange, entry: KeyEntry, trustedProxies: BlockList) {
    this.#exchange = exchange;
    this.entry = entry;
    this.source = sourceOf(exchange, trustedProxies);
  }

  end({ code }: TollgateError): void {
    this.#exchange.cutAs(outcomeOfError(code), code);
  }
}
