import type { DecidedWindow } from '../limiter/request-limits.ts';
import type { KeySnapshot } from './consumer-key.ts';

/** A request of a consumer, as a service describes it that is no HTTP server or is behind none of ours. */
export interface VerifiedRequest {
  readonly secret: string;
  /** `GET` by default. */
  readonly method?: string;
  /** With or without a query; `/` by default. */
  readonly path?: string;
  readonly customerId?: string;
  /** The consumer's address: without it a key with `allowedIps` is rejected. */
  readonly address?: string;
  /** The origin of the web page that makes the request. */
  readonly origin?: string;
  /** In place of what the plan says. */
  readonly cost?: number;
  /** False: nothing is counted, also not in usage. True by default. */
  readonly count?: boolean;
}

/** Who wants to know. */
export interface VerifyingClient {
  /** Wrong secrets count against a bound of each id. */
  readonly id: string;
  /** Keys without all of these tags are unknown to the client. */
  readonly onlyTags: readonly string[];
}

/** What the proxy would have responded with. */
export interface Verdict {
  readonly allowed: boolean;
  readonly status: number;
  /** Null if the request is allowed. */
  readonly code: string | null;
  /** Undefined if no key that the client may see has the secret. */
  readonly key: KeySnapshot | undefined;
  readonly customerId: string;
  /** The windows that applied; none if the key was rejected before, or while the shared counters are unavailable. */
  readonly windows: readonly DecidedWindow[];
  /** Null: another try makes no sense, or need not wait. */
  readonly retryAfterSeconds: number | null;
}

/** Decides about a request without forwarding it. */
export interface KeyVerifier {
  /** Rejects with an error of the catalogue if the proxy could not decide either, or if the request's form is invalid. */
  verify(request: VerifiedRequest, client: VerifyingClient): Promise<Verdict>;
}
