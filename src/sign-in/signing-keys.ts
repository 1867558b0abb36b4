import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type JWTVerifyGetKey,
  type RemoteJWKSet,
} from 'jose';
import type { Clock } from '../platform/clock.ts';
import { boundedFetch } from './bounded-fetch.ts';
import { SignInFailure } from './sign-in-failure.ts';

/** How old keys may get before they are fetched again. */
const MAX_AGE_MS = 600_000;
/** How long nothing is fetched after a failure. */
const PAUSE_MS = 30_000;
/** The same while there are no keys, without which no person can sign in. */
const SHORT_PAUSE_MS = 1000;

/**
 * The keys with which the provider signs. Cached: an unknown key has them fetched again at most every 30 seconds, and known keys stay in use
 * while the provider is away.
 */
export class SigningKeys {
  readonly #remote: RemoteJWKSet;
  readonly #clock: Clock;
  #fetchAtMs: number;
  #pausedUntilMs = 0;

  /** `timeoutMs`: of a request. */
  constructor(url: URL, { clock, timeoutMs }: { readonly clock: Clock; readonly timeoutMs: number }) {
    this.#remote = createRemoteJWKSet(url, {
      ...{ cacheMaxAge: Number.POSITIVE_INFINITY, timeoutDuration: timeoutMs },
      [customFetch]: boundedFetch,
    });
    this.#clock = clock;
    this.#fetchAtMs = clock.monotonicMs() + MAX_AGE_MS;
  }

  /** The key of a signature. Throws an error of `jose`, or `SignInFailure`. */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    const nowMs = this.#clock.monotonicMs();
    const isPaused = nowMs < this.#pausedUntilMs;
    if (!isPaused && nowMs >= this.#fetchAtMs) this.#refresh(nowMs);
    try {
      return await (isPaused ? this.#known(header, token) : this.#remote(header, token));
    } catch (error) {
      if (isUnreadableKey(error))
        throw new SignInFailure('response_invalid', 'a key of the provider can not be read');
      const pauseMs = this.#remote.jwks() === undefined ? SHORT_PAUSE_MS : PAUSE_MS;
      if (!isPaused && !isAboutKey(error)) this.#pausedUntilMs = this.#clock.monotonicMs() + pauseMs;
      throw error;
    }
  };

  /** Fetches the keys again. */
  reload(): Promise<void> {
    return this.#remote.reload();
  }

  /** No request waits for it: the known keys are good until it is done. */
  #refresh(nowMs: number): void {
    this.#fetchAtMs = nowMs + MAX_AGE_MS;
    this.#remote.reload().catch(() => {
      this.#fetchAtMs = nowMs + PAUSE_MS;
    });
  }

  #known(...[header, token]: Parameters<JWTVerifyGetKey>): ReturnType<JWTVerifyGetKey> {
    const known = this.#remote.jwks();
    if (known === undefined) throw new SignInFailure('provider_unavailable', 'no keys yet');
    return createLocalJWKSet(known)(header, token);
  }
}

/** WebCrypto throws these for a key that it can not import. `fetch` throws a `TypeError` too, which has a cause. */
function isUnreadableKey(error: unknown): boolean {
  return error instanceof DOMException || (error instanceof TypeError && error.cause === undefined);
}

/** Whether an error says something about the key, and not that the keys could not be fetched. */
function isAboutKey(error: unknown): boolean {
  return (
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys ||
    error instanceof errors.JOSENotSupported
  );
}
