import { createHash } from 'node:crypto';
import { TollgateError } from '../errors.ts';
import type { SecretVault } from '../keys/secrets/secret-vault.ts';
import type { Clock } from '../platform/clock.ts';
import type { OnceOnly, ResponseStore, StoredResponse } from './response-store.ts';

/** What `IdempotentRequests` is built from. */
export interface IdempotentRequestsOptions {
  readonly store: ResponseStore;
  readonly vault: SecretVault;
  readonly clock: Clock;
}

/** A request with an `Idempotency-Key`. */
export interface IdempotentRequest {
  /** The credential of the request: each one has its own keys. */
  readonly credential: string;
  readonly key: string;
  /** Identifies the request: its method, path and body. */
  readonly content: string;
}

/** A response without the headers of a single attempt. */
export interface KeptResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
}

/** How long a response is kept. Milliseconds. */
const KEPT_MS = 24 * 3_600_000;

/** A key that was already used for another request. */
class IdempotencyKeyReused extends TollgateError {
  constructor() {
    super(
      'idempotency_key_reused',
      'The Idempotency-Key was used for another request, with another method, path or body. Send a new key with this one.',
    );
  }
}

/** A request whose first attempt is still running. */
class IdempotencyInProgress extends TollgateError {
  constructor() {
    super('idempotency_in_progress', 'A request with this Idempotency-Key is under way. Try again shortly.');
  }
}

/**
 * Performs requests once: a retry gets the response of the first attempt. Responses are sealed with the encryption key, because they may
 * contain a secret, and kept for 24 hours.
 */
export class IdempotentRequests {
  readonly #options: IdempotentRequestsOptions;

  constructor(options: IdempotentRequestsOptions) {
    this.#options = options;
  }

  /**
   * `operationId` is the same for all attempts, so that changes outside of the record store can be made idempotent. If the work rejects,
   * its changes are rolled back, and `responseTo` returns the response to keep. If `responseTo` throws, nothing is kept, and the request
   * may be retried. Throws `IdempotencyKeyReused` or `IdempotencyInProgress`.
   */
  async perform(
    request: IdempotentRequest,
    work: (operationId: string) => Promise<KeptResponse>,
    responseTo: (failure: unknown) => KeptResponse,
  ): Promise<{ readonly response: KeptResponse; readonly isReplayed: boolean }> {
    const { store, clock } = this.#options;
    const atMs = clock.nowMs();
    const once: OnceOnly = { id: idOf(request), atMs, validSinceMs: atMs - KEPT_MS };
    const digest = sha256(request.content).toString('base64');
    const seal = (response: KeptResponse) => this.#seal(once.id, { digest, response });
    const performed = await store.performOnce(
      once,
      async () => seal(await work(once.id.toString('base64url'))),
      (failure) => seal(responseTo(failure)),
    );
    if (performed.kind === 'under_way') throw new IdempotencyInProgress();
    const kept = this.#open({ id: once.id, sealed: performed.sealed });
    if (kept.digest !== digest) throw new IdempotencyKeyReused();
    return { response: kept.response, isReplayed: performed.kind === 'stored' };
  }

  /** Removes expired responses. */
  async prune(): Promise<void> {
    const { store, clock } = this.#options;
    await store.prune(clock.nowMs() - KEPT_MS);
  }

  #seal(id: Buffer, kept: Kept): Buffer {
    return this.#options.vault.seal(sealedFor(id), JSON.stringify(kept));
  }

  /** Opens what `#seal` has sealed. */
  #open({ id, sealed }: StoredResponse): Kept {
    return JSON.parse(this.#options.vault.open(sealedFor(id), sealed)) as Kept;
  }
}

/** A response with the digest of its request. */
interface Kept {
  readonly digest: string;
  readonly response: KeptResponse;
}

/** The name that a response is sealed for: a copy under another id can't be opened. */
export function sealedFor(id: Buffer): string {
  return `idempotent response ${id.toString('base64')}`;
}

function idOf({ credential, key }: IdempotentRequest): Buffer {
  return sha256(JSON.stringify([credential, key]));
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
