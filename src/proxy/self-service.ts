import type { IncomingMessage, ServerResponse } from 'node:http';
import { InvalidApiKey, type TollgateError } from '../errors.ts';
import { negotiatedError } from '../http/errors/problem-details.ts';
import { ownPageTest } from '../http/own-page.ts';
import type { ParsedRequest } from '../http/parsed-request.ts';
import type { RequestNotes } from '../http/with-request-id.ts';
import { KeyEntry } from '../keys/cache/key-entry.ts';
import type { KeySnapshot, PresentedSecret } from '../keys/consumer-key.ts';
import type { Exchange, Step } from './exchange.ts';
import type { ProxyOptions } from './proxy-options.ts';
import { authenticate, type CurrentKeyOptions, keyFault, sourceFault } from './steps/authenticate.ts';
import { type CrossOrigin, cors } from './steps/cors.ts';
import { limitSelfService } from './steps/limit-self-service.ts';
import type { ExchangeSummary } from './steps/record.ts';
import { sendRejection } from './steps/send-rejection.ts';

/** A request about the presented key itself, once the key has been found valid. */
interface OwnKeyRequest {
  readonly keyId: string;
  /** The presented secret as one of the key in this state. Throws the fault if the request may not use the key any more. */
  readonly presentedIn: (current: KeySnapshot) => PresentedSecret;
  readonly head: ParsedRequest;
  /** To be completed by the code that serves the request. */
  readonly notes: RequestNotes;
}

type PresentedKeyOptions = Pick<CurrentKeyOptions, 'clock' | 'trustedProxies' | 'isOwnPage'>;
type ServeOptions = PresentedKeyOptions & Pick<ProxyOptions, 'previousSecretUses'>;

/** Responds to consumers about their own keys. */
export interface SelfService {
  /** Why a request is rejected whatever its key: unknown path, or a method that the path does not support. Undefined = it is not. */
  faultOf(req: IncomingMessage, head: ParsedRequest): TollgateError | undefined;
  /** Owns the response, on which the headers of the gateway are already set. */
  serve(req: IncomingMessage, res: ServerResponse, own: OwnKeyRequest): void;
  /** Called once for every request, when its response is over. Must not throw. */
  observe(summary: ExchangeSummary): void;
}

/**
 * The steps of a request about the presented key itself. The key is checked as for a proxied request, but the request is not counted
 * against its plan, not recorded and not forwarded. A page of the gateway itself, such as the portal, counts as one of the key's origins.
 */
export function selfServiceSteps(
  options: ProxyOptions,
  crossOrigin: CrossOrigin,
  service: SelfService,
): readonly Step[] {
  const keyOptions = { ...options, crossOrigin, isOwnPage: ownPageTest(options.publicUrl) };
  return [
    negotiateErrors,
    cors(crossOrigin),
    findEndpoint(service),
    authenticate(keyOptions),
    limitSelfService(keyOptions),
    sendRejection(),
    serve(service, keyOptions),
  ];
}

/** Errors come in the format that the request's `Accept` prefers, as those of the endpoints do. */
const negotiateErrors: Step = (exchange) => {
  exchange.formatError = negotiatedError;
  exchange.next();
};

function findEndpoint(service: SelfService): Step {
  return (exchange) => {
    const fault = service.faultOf(exchange.req, exchange.head);
    if (fault === undefined) exchange.next();
    else exchange.reject(fault);
  };
}

function serve(service: SelfService, options: ServeOptions): Step {
  return (exchange) => {
    const { req, res, head, entry, requestId } = exchange;
    if (entry === undefined || exchange.isClosed) return;
    const { keyId } = entry.snapshot;
    if (entry.previousUntilMs !== null) options.previousSecretUses.note(keyId, entry.secretVersion);
    const notes: RequestNotes = { requestId, actor: keyId };
    const noteError = (): void => {
      exchange.errorCode = notes.errorCode;
    };
    // A function written directly into the property would be created in V8's old generation, and keep the exchange in memory.
    exchange.onClosed = noteError;
    for (const [name, value] of ownHeaders(exchange)) res.setHeader(name, value);
    // From here on the service owns the response, also for timeout errors.
    res.owner = undefined;
    const presentedIn = (current: KeySnapshot) => presentedSecret(exchange, current, options);
    service.serve(req, res, { keyId, presentedIn, head, notes });
  };
}

/** See `OwnKeyRequest`. */
function presentedSecret(
  exchange: Exchange,
  snapshot: KeySnapshot,
  options: PresentedKeyOptions,
): PresentedSecret {
  const { clock } = options;
  const current = exchange.entry && KeyEntry.of(snapshot, exchange.entry, clock.monotonicMs());
  if (current === undefined) throw new InvalidApiKey();
  const fault = keyFault(current, clock) ?? sourceFault(exchange, snapshot.restrictions, options);
  if (fault !== undefined) throw fault;
  return { version: current.secretVersion, endsAtMs: current.previousUntilMs };
}

function ownHeaders(exchange: Exchange): readonly (readonly [name: string, value: string])[] {
  const lines = exchange.ownLines().split('\r\n').slice(0, -1);
  return lines.map((line) => {
    const colon = line.indexOf(': ');
    return [line.slice(0, colon), line.slice(colon + 2)];
  });
}
