import type { IncomingMessage } from 'node:http';
import { InvalidBody, TollgateError } from '../errors.ts';
import { FailedCredentials } from '../http/credentials/failed-credentials.ts';
import type { ErrorResponse } from '../http/errors/error-responses.ts';
import type { RequestTarget } from '../http/parsed-request.ts';
import type { KeyEntry } from '../keys/cache/key-entry.ts';
import type { KeySnapshot } from '../keys/consumer-key.ts';
import type { KeyVerifier, Verdict, VerifiedRequest, VerifyingClient } from '../keys/key-verifier.ts';
import type { Decision, RateLimiter } from '../limiter/rate-limiter.ts';
import { customerOf } from '../limiter/request-limits.ts';
import { isVisible } from '../permissions/visible-records.ts';
import type { Step } from '../proxy/exchange.ts';
import type { ProxyOptions } from '../proxy/proxy-options.ts';
import { authenticate, type KeySource } from '../proxy/steps/authenticate.ts';
import { CrossOrigin } from '../proxy/steps/cors.ts';
import { limit } from '../proxy/steps/limit.ts';
import { type ExchangeSummary, record, summaryOf } from '../proxy/steps/record.ts';
import { sendRejection } from '../proxy/steps/send-rejection.ts';
import { KNOWN_METHODS } from '../server/parsing/parse-request.ts';
import { readTarget } from '../server/parsing/request-target.ts';
import { VerifyExchange } from './verify-exchange.ts';

/** What the verifier is built from. */
export interface VerifierOptions {
  /** The options of the proxied side, whose keys, limits and statistics are used. */
  readonly decision: ProxyOptions;
  /** Called for each counted request that was decided. */
  readonly observe: (summary: ExchangeSummary) => void;
}

/** Decides by the steps of a proxied request. There is no preflight to respond to, and nothing to forward. */
export class Verifier implements KeyVerifier {
  readonly #options: VerifierOptions;
  readonly #crossOrigin: CrossOrigin;
  readonly #failedCredentials: FailedCredentials;
  /** Who asks about a request. */
  readonly #clients = new WeakMap<IncomingMessage, string>();
  readonly #recordUse: Step;

  constructor(options: VerifierOptions) {
    const { decision } = options;
    this.#options = options;
    this.#failedCredentials = new FailedCredentials({
      ...decision,
      sitesOf: (req) => ({ site: this.#clients.get(req) ?? '', network: undefined }),
    });
    this.#crossOrigin = new CrossOrigin({
      ...decision,
      failedCredentials: this.#failedCredentials,
      corsAllowedOrigins: ['*'],
    });
    this.#recordUse = record(decision);
  }

  verify(request: VerifiedRequest, { id, onlyTags }: VerifyingClient): Promise<Verdict> {
    const { customerIdHeader, clock } = this.#options.decision;
    assertKnownMethod(request);
    const target = targetOf(request);
    const keys = this.#keysFor(onlyTags);
    const result = Promise.withResolvers<Verdict>();
    const exchange = new VerifyExchange(this.#steps(keys, request.count !== false), {
      ...{ request, target, customerIdHeader, startedAtMs: clock.monotonicMs() },
      decided: (decided, response) => {
        this.#close(decided, request);
        const { error } = decided;
        if (error !== undefined && decided.status >= SERVER_ERROR) result.reject(error);
        else result.resolve(verdictOf(decided, { customerIdHeader, response, keys }));
      },
    });
    this.#clients.set(exchange.req, id);
    exchange.next();
    return result.promise;
  }

  #keysFor(onlyTags: readonly string[]): KeySource {
    const { keys } = this.#options.decision;
    return onlyTags.length === 0 ? keys : visibleKeys(keys, onlyTags);
  }

  #steps(keys: KeySource, isCounted: boolean): readonly Step[] {
    const { decision } = this.#options;
    const options = {
      ...{ ...decision, keys, failedCredentials: this.#failedCredentials, crossOrigin: this.#crossOrigin },
      ...(!isCounted && { limiter: uncounted(decision.limiter), thresholds: undefined }),
    };
    const recording = isCounted ? [this.#recordUse] : [];
    return [authenticate(options), limit(options), ...recording, sendRejection(), allow];
  }

  /** What follows when the response to a proxied request is over. */
  #close(exchange: VerifyExchange, { count = true }: VerifiedRequest): void {
    const { decision, observe } = this.#options;
    exchange.isClosed = true;
    exchange.closedAtMs = decision.clock.monotonicMs();
    try {
      exchange.onClosed?.(exchange);
      if (count) observe(summaryOf(exchange));
    } catch (fault) {
      decision.onFault(fault);
    }
  }
}

const SERVER_ERROR = 500;

const allow: Step = (exchange) =>
  exchange.respondEmpty({ status: 200, outcome: 'allowed', headers: [], lines: '' });

/** A method that the proxy would reject is a mistake: no limit or cost would mean it. */
function assertKnownMethod({ method = 'GET' }: VerifiedRequest): void {
  if (!KNOWN_METHODS.has(method))
    throw new InvalidBody([{ field: 'method', message: 'must be a method that the proxy forwards' }]);
}

function targetOf({ path = '/' }: VerifiedRequest): RequestTarget {
  const target = path.startsWith('/') ? readTarget(path) : undefined;
  if (target === undefined || target instanceof TollgateError) {
    const message = target?.message ?? 'must be a path';
    throw new InvalidBody([{ field: 'path', message }]);
  }
  return target;
}

interface VerdictParts {
  readonly customerIdHeader: string;
  readonly response: ErrorResponse | undefined;
  readonly keys: KeySource;
}

function verdictOf(exchange: VerifyExchange, { customerIdHeader, response, keys }: VerdictParts): Verdict {
  const { req, decision, error, status } = exchange;
  const isCounted = decision?.kind === 'allowed' || decision?.kind === 'limited';
  const retryAfter = response?.headers['Retry-After'];
  return {
    allowed: response === undefined,
    status,
    code: response === undefined ? null : (error?.code ?? exchange.outcome),
    key: keyOf(exchange, keys),
    customerId: customerOf(req.headers[customerIdHeader]),
    windows: isCounted && !decision.degraded ? decision.windows : [],
    retryAfterSeconds: retryAfter === undefined ? null : Number(retryAfter),
  };
}

/** The key of the secret, also where it may not be used. */
function keyOf({ entry, error, secret }: VerifyExchange, keys: KeySource): KeySnapshot | undefined {
  const isUnusable = error?.code === 'key_disabled' || error?.code === 'key_expired';
  return (entry ?? (isUnusable ? keys.find(secret) : undefined))?.snapshot;
}

/** A limiter that says what would be decided, and counts nothing: a request without a cost is counted nowhere. */
function uncounted(limiter: RateLimiter): RateLimiter {
  return {
    decide(subject, decided) {
      const { cost } = subject;
      limiter.decide({ ...subject, cost: 0, askedCost: cost }, (decision) => decided(atCost(decision, cost)));
    },
  };
}

function atCost(decision: Decision, cost: number): Decision {
  if (decision.kind !== 'allowed' || cost === 0) return decision;
  const windows = decision.windows.map((window) => ({
    ...window,
    isExceeded: window.used + cost > window.quota,
  }));
  const isLimited = windows.some(({ isExceeded, limit }) => isExceeded && limit.mode === 'enforce');
  return { ...decision, windows, kind: isLimited ? 'limited' : 'allowed' };
}

/** The keys that have all of these tags, as if there were no others. */
function visibleKeys(keys: KeySource, onlyTags: readonly string[]): KeySource {
  const visible = (entry: KeyEntry | undefined): KeyEntry | undefined =>
    isVisible(entry?.snapshot.owner?.tags ?? [], onlyTags) ? entry : undefined;
  return {
    find: (secret) => visible(keys.find(secret)),
    isUnchecked: (entry, atMs) => keys.isUnchecked(entry, atMs),
    confirm: (entry, confirmed) => keys.confirm(entry, (found, fresh) => confirmed(visible(found), fresh)),
    load: (secret, client, loaded) =>
      keys.load(secret, client, (error, entry, fresh) => loaded(error, visible(entry), fresh)),
    reload: (entry, reloaded) => keys.reload(entry, (error, found) => reloaded(error, visible(found))),
  };
}
