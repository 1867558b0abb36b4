import { TollgateError } from '../errors.ts';
import type { KeyEntry } from '../keys/key-directory.ts';
import type { Decision, RateLimiter } from '../limiter/rate-limiter.ts';
import type { Clock } from '../platform/clock.ts';
import { judged, type KeySource, unavailable } from './authenticate.ts';
import type { Exchange, Step } from './exchange.ts';

/** What it takes to decide whether a key may make one more request. */
export interface AdmitOptions {
  readonly keys: KeySource;
  readonly limiter: RateLimiter;
  readonly clock: Clock;
}

/**
 * Asks the limiter. When it finds the replica's copy of the key out of date, the key is read again, judged again and asked for again:
 * so a change to a key holds with its next request. Where the limiter decides without the shared version, a key is read again once it
 * was not for some seconds. A denial, or a limiter that does not answer, is noted for a later step, because
 * such a request is recorded like any other of the key.
 */
export function admit(options: AdmitOptions): Step {
  return (exchange) => {
    if (exchange.entry !== undefined) ask(exchange, exchange.entry, options);
  };
}

function ask(exchange: Exchange, entry: KeyEntry, options: AdmitOptions): void {
  const { keyId, version, plan } = entry.grant;
  options.limiter.decide({ keyId, version, fresh: exchange.isFresh, quota: plan }, (decision) =>
    decided(exchange, decision, options),
  );
}

function decided(exchange: Exchange, decision: Decision, options: AdmitOptions): void {
  if (decision.kind === 'unavailable') {
    exchange.refusal = unavailable(decision.cause);
  } else if (decision.kind !== 'stale') {
    exchange.decision = decision;
    if (decision.degraded && !exchange.isFresh) {
      confirm(exchange, options);
      return;
    }
  } else if (!exchange.isFresh) {
    renew(exchange, options);
    return;
  } else {
    exchange.refusal = unavailable(new Error('A copy read for this request was called stale.'));
  }
  exchange.next();
}

/** Without the shared version nobody has said that the copy is current. */
function confirm(exchange: Exchange, { keys, clock }: AdmitOptions): void {
  const { entry } = exchange;
  if (entry === undefined) return;
  keys.confirm(entry, (confirmed) => {
    const judgement = judged(confirmed, clock);
    exchange.entry = judgement instanceof TollgateError ? undefined : judgement;
    if (judgement instanceof TollgateError) exchange.refuse(judgement);
    else exchange.next();
  });
}

function renew(exchange: Exchange, options: AdmitOptions): void {
  const { entry } = exchange;
  if (entry === undefined) return;
  options.keys.reload(entry, (error, reloaded) => {
    // Until the copy is judged again nobody knows whether the key still exists: it counts as nobody's request.
    exchange.entry = undefined;
    if (error) {
      exchange.refuse(unavailable(error));
      return;
    }
    const judgement = judged(reloaded, options.clock);
    if (judgement instanceof TollgateError) {
      exchange.refuse(judgement);
      return;
    }
    exchange.entry = judgement;
    exchange.isFresh = true;
    ask(exchange, judgement, options);
  });
}
