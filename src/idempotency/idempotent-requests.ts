// The room `idempotency`: requests with an `Idempotency-Key`, which are performed once.
// In: the credential, the idempotency key and the content of a request, and the work.
// Out: the response of the first attempt, kept sealed for 24 hours.

import { hash } from 'node:crypto';
import { TollgateError } from '../errors.ts';
import type { Grant } from '../permissions/principal.ts';
import { includesGrant } from '../permissions/visible-records.ts';
import type { Clock } from '../platform/clock.ts';
import type { SecretVault } from '../secrets/secret-vault.ts';
import type { OnceOnly, ResponseStore, StoredResponse } from './response-store.ts';

/** What `IdempotentRequests` is built from. */
export interface IdempotentRequestsOptions<Unit> {
  readonly store: ResponseStore<Unit>;
  readonly vault: SecretVault;
  readonly clock: Clock;
}

/** A request with an `Idempotency-Key`. */
export interface IdempotentRequest {
  /** The credential of the request: each one has its own keys. */
  readonly credential: string;
  /** What the credential permits now: a response is not repeated to one that permitted more when it was made. */
  readonly grant: Grant;
  readonly idempotencyKey: string;
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
/**
 * How long a claim rejects retries. After a crash the request can be performed again only when the claim has expired. Longer than the work
 * usually takes; when the work takes longer, a retry performs it again. Milliseconds.
 */
const CLAIMED_MS = 10_000;

/** An idempotency key that was already used for another request. */
class IdempotencyKeyReused extends TollgateError {
  constructor() {
    super(
      'idempotency_key_reused',
      'The Idempotency-Key was used for another request, with another method, path or body. Send a new key with this one.',
    );
  }
}

/** A response of a time when the credential was permitted more. */
class GrantNarrowed extends TollgateError {
  constructor() {
    super(
      'idempotency_key_reused',
      'The Idempotency-Key was used when this credential was permitted more than now, so its response is not repeated. Send a new key.',
    );
  }
}

/** A request whose first attempt is still running. */
class IdempotencyInProgress extends TollgateError {
  override readonly retryAfterS: number | undefined;

  /** `claimedForMs`: how long its claim rejects retries at most; undefined = it has none. */
  constructor(claimedForMs?: number) {
    super('idempotency_in_progress', 'A request with this Idempotency-Key is under way. Try again shortly.');
    this.retryAfterS =
      claimedForMs === undefined ? undefined : Math.min(Math.ceil(claimedForMs / 1000), CLAIMED_MS / 1000);
  }
}

/**
 * Performs requests once: a retry gets the response of the first attempt. Responses are sealed with the encryption key, because they may
 * contain a secret, and kept for 24 hours.
 */
export class IdempotentRequests<Unit> {
  readonly #options: IdempotentRequestsOptions<Unit>;

  constructor(options: IdempotentRequestsOptions<Unit>) {
    this.#options = options;
  }

  /**
   * The changes that the work makes in `unit` are stored with the response. `operationId` is the same for all attempts, so that changes outside of the record store can be made idempotent. If the work rejects,
   * its changes are rolled back, and `responseTo` returns the response to keep. If `responseTo` throws, nothing is kept, and the request
   * may be retried. Throws `IdempotencyKeyReused` or `IdempotencyInProgress`.
   */
  async perform(
    request: IdempotentRequest,
    work: (operationId: string, unit: Unit) => Promise<KeptResponse>,
    responseTo: (failure: unknown) => KeptResponse,
  ): Promise<{ readonly response: KeptResponse; readonly isReplayed: boolean }> {
    const once = this.#onceOnly(request);
    const own = ownOf(request);
    const seal = (response: KeptResponse) => this.#seal(once.id, { ...own, response });
    const performed = await this.#options.store.performOnce(
      once,
      async (unit) => seal(await work(operationIdOf(once), unit)),
      (failure) => seal(responseTo(failure)),
    );
    if (performed.kind === 'under_way') throw new IdempotencyInProgress();
    const { response } = this.#openOwn({ id: once.id, sealed: performed.sealed }, own);
    return { response, isReplayed: performed.kind === 'stored' };
  }

  /**
   * The same for work that changes no records, or has its own transactions: no connection is held while it runs, and what it has written
   * stays when it rejects. A claim is stored before the work, and replaced by the response afterwards. After a crash, or when the response
   * can't be stored, a retry performs the work again once the claim has expired.
   */
  async performWithoutTransaction(
    request: IdempotentRequest,
    work: (operationId: string) => Promise<KeptResponse>,
    responseTo: (failure: unknown) => KeptResponse,
  ): Promise<{ readonly response: KeptResponse; readonly isReplayed: boolean }> {
    const { store } = this.#options;
    const once = this.#onceOnly(request);
    const { id } = once;
    const own = ownOf(request);
    const claim = this.#sealClaim(id, own.digest, once.atMs + CLAIMED_MS);
    const kept = await this.#claim(once, own, claim);
    if (kept !== undefined) return { response: kept, isReplayed: true };
    try {
      const response = await work(operationIdOf(once)).catch(responseTo);
      await store.replace({ id, sealed: claim }, this.#seal(id, { ...own, response }));
      return { response, isReplayed: false };
    } catch (error) {
      // If this fails too, the claim expires later. The digest stays: the work may have changed something under this operation id.
      await store.replace({ id, sealed: claim }, this.#sealClaim(id, own.digest, 0)).catch(() => {});
      throw error;
    }
  }

  /** Removes expired responses. */
  async prune(goesOn?: () => boolean): Promise<void> {
    const { store, clock } = this.#options;
    await store.prune(clock.nowMs(), KEPT_MS, goesOn);
  }

  /** Stores the claim, unless the request has been performed: then resolves with its response. */
  async #claim(once: OnceOnly, own: Own, claim: Buffer): Promise<KeptResponse | undefined> {
    const { store } = this.#options;
    const { id, atMs } = once;
    const found = await store.performOnce(once, async () => claim, rethrow);
    if (found.kind === 'under_way') throw new IdempotencyInProgress();
    if (found.kind === 'performed') return undefined;
    const { response, claimedUntilMs } = this.#openOwn({ id, sealed: found.sealed }, own);
    if (claimedUntilMs === undefined) return response;
    if (claimedUntilMs > atMs) throw new IdempotencyInProgress(claimedUntilMs - atMs);
    if (!(await store.replace({ id, sealed: found.sealed }, claim))) throw new IdempotencyInProgress();
    return undefined;
  }

  #onceOnly(request: IdempotentRequest): OnceOnly {
    const atMs = this.#options.clock.nowMs();
    return { id: idOf(request), atMs, validSinceMs: atMs - KEPT_MS };
  }

  /** Opens what is stored for this request. Throws `IdempotencyKeyReused` if it is for another one, and `GrantNarrowed`. */
  #openOwn(stored: StoredResponse, { digest, grant }: Own): Kept {
    const kept = this.#open(stored);
    if (kept.digest !== digest) throw new IdempotencyKeyReused();
    if (kept.grant !== undefined && !includesGrant(grant, kept.grant)) throw new GrantNarrowed();
    return kept;
  }

  /** Versions that know no claims replay its response, which is an error. */
  #sealClaim(id: Buffer, digest: string, claimedUntilMs: number): Buffer {
    const { code, message } = new IdempotencyInProgress();
    const response = { status: 409, headers: {}, body: { error: message, code } };
    return this.#seal(id, { digest, response, claimedUntilMs });
  }

  #seal(id: Buffer, kept: Kept): Buffer {
    return this.#options.vault.seal(sealedFor(id), JSON.stringify(kept));
  }

  /** Opens what `#seal` has sealed. */
  #open({ id, sealed }: StoredResponse): Kept {
    return JSON.parse(this.#options.vault.open(sealedFor(id), sealed)) as Kept;
  }
}

/** A response with the digest of its request, or, until there is one, the claim of the request. */
interface Kept {
  readonly digest: string;
  /** What the credential was permitted when the response was made. Missing in a claim. */
  readonly grant?: Grant;
  readonly response: KeptResponse;
  /** Only of a claim: until then retries are rejected. Milliseconds since 1970. */
  readonly claimedUntilMs?: number;
}

/** What is kept of a request. */
type Own = Required<Pick<Kept, 'digest' | 'grant'>>;

/** The name that a response is sealed for: a copy under another id can't be opened. */
export function sealedFor(id: Buffer): string {
  return `idempotent response ${id.toString('base64')}`;
}

function idOf({ credential, idempotencyKey }: IdempotentRequest): Buffer {
  return sha256(JSON.stringify([credential, idempotencyKey]));
}

function ownOf({ content, grant }: IdempotentRequest): Own {
  return { digest: sha256(content).toString('base64'), grant };
}

function operationIdOf({ id }: OnceOnly): string {
  return id.toString('base64url');
}

function rethrow(failure: unknown): never {
  throw failure;
}

function sha256(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
