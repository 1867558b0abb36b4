import type { PreviousSecretUses } from '../../keys/secrets/previous-secret-uses.ts';
import { customerOf } from '../../limiter/customer-id.ts';
import { PathMatcher } from '../../paths/path-matcher.ts';
import type { PathCase } from '../../paths/path-readings.ts';
import { isSuccessful, type UsageRecorder } from '../../usage/usage.ts';
import type { Exchange, Step } from '../exchange.ts';
import { shadowLimitIdsOf } from '../exchange-summary.ts';

/** Where usage is recorded, and under which customer and endpoint. */
export interface RecordOptions {
  readonly usage: UsageRecorder;
  /** Name of the request header that names the customer, lower case. */
  readonly customerIdHeader: string;
  /** Path patterns: a path is counted under the first one that it matches, otherwise as it is. */
  readonly endpointPatterns: readonly string[];
  readonly pathCase: PathCase;
  /** Records that the previous secret of a key is still used. */
  readonly previousSecretUses: Pick<PreviousSecretUses, 'note'>;
}

/**
 * Records an authenticated request exactly once, when its response is over, however it ended. It subscribes before
 * anything is forwarded; a request whose client has left already is recorded at once.
 */
export function record(options: RecordOptions): Step {
  const { usage, customerIdHeader, previousSecretUses } = options;
  const endpointOf = endpointNames(options);

  function take(exchange: Exchange): void {
    if (exchange.entry === undefined) return;
    const { snapshot } = exchange.entry;
    const { status } = exchange;
    usage.record({
      keyId: snapshot.keyId,
      planId: snapshot.plan?.id ?? '',
      endpoint: endpointOf(exchange),
      customerId: customerOf(exchange.req.headers[customerIdHeader]),
      status,
      successful: isSuccessful(status, exchange.isSent),
      rateLimited: exchange.outcome === 'limited',
      shadowLimited: shadowLimitIdsOf(exchange.decision).length,
      forwardedMs: exchange.forwardedAtMs === null ? null : exchange.closedAtMs - exchange.startedAtMs,
      bytesIn: exchange.requestBody?.bytes ?? 0,
      bytesOut: exchange.bodyBytes,
    });
  }

  return (exchange) => {
    const { entry } = exchange;
    if (entry !== undefined && entry.previousUntilMs !== null)
      previousSecretUses.note(entry.snapshot.keyId, entry.secretVersion);
    if (exchange.isClosed) take(exchange);
    else exchange.onClosed = take;
    exchange.next();
  };
}

/** Without patterns, an endpoint is a path as it was sent, and nothing else is made of it. */
function endpointNames({ endpointPatterns, pathCase }: RecordOptions): (exchange: Exchange) => string {
  if (endpointPatterns.length === 0) return ({ head }) => head.path;
  const endpoints = new PathMatcher(
    endpointPatterns.map((path) => ({ pattern: { path }, value: path })),
    pathCase,
  );
  return (exchange) => {
    const { req, head } = exchange;
    return endpoints.matchAny(req.method ?? '', head.path, exchange.otherReadings(pathCase)) ?? head.path;
  };
}
