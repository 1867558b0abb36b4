import type { ChangeContext } from '../../audit/change-context.ts';
import { KeyNotFound, TollgateError } from '../../errors.ts';
import { sitesOf } from '../../platform/address-sites.ts';
import type { BoundedCache } from '../../platform/bounded-cache.ts';
import type { Clock } from '../../platform/clock.ts';
import type { ConcurrencyLimit } from '../../platform/concurrency/concurrency-limit.ts';
import type { Random } from '../../platform/random.ts';
import type { SecretVault } from '../../secrets/secret-vault.ts';
import { isKeyId } from '../key-id.ts';
import {
  createHandoverToken,
  type Handover,
  handoverDigest,
  isHandoverId,
  isHandoverToken,
} from './handover.ts';
import {
  HandoverGone,
  HandoverNotFound,
  HandoverUnavailable,
  SecretNotAvailable,
} from './handover-errors.ts';
import type { FoundHandover, HandoverPage, HandoverRepository } from './handover-repository.ts';
import { handoverSeal } from './rotate-sealed-handovers.ts';

/** What the service of links needs. */
export interface HandoverServiceOptions {
  readonly repository: HandoverRepository;
  readonly vault: SecretVault;
  readonly clock: Clock;
  readonly random: Random;
  readonly makeId: () => string;
  /** Bounds the look-ups of all services of the process. */
  readonly lookUps: ConcurrencyLimit;
  /** When the log last had that a used link was opened, by the link's id: for all services of the process. */
  readonly reuses: BoundedCache<number>;
  /** `once`: secrets can be handed over only when they are made. */
  readonly reveal: 'always' | 'once';
  /** The URL of the page, without the token. `host` is the `Host` of the request. Undefined: consumers can't reach one. */
  readonly pageUrl: (host: string | undefined) => string | undefined;
}

/** What an administrator says of a link. */
export interface HandoverRequest {
  readonly ttlSeconds: number;
  readonly note?: string | undefined;
}

/** A link that was made. Its URL is known only now. */
export interface MadeHandover {
  readonly handoverId: string;
  readonly url: string;
  /** Milliseconds since 1970. */
  readonly expiresAtMs: number;
}

/** How long the record of a link is kept after its expiry. Milliseconds. */
const KEPT_MS = 30 * 24 * 3_600_000;
/**
 * Most look-ups at once: a flood of guesses must not take all connections to the store. A group is an IPv4 address, or an IPv6 network of 64
 * bits.
 */
export const HANDOVER_LOOK_UPS = {
  maxRunning: 4,
  maxWaiting: 1024,
  maxWaitingPerGroup: 64,
  overloaded: () =>
    new TollgateError('overloaded', 'Too many links wait to be looked up. Try again shortly.'),
};

/** The most links that `reuses` holds. */
export const MAX_REUSED_HANDOVERS = 1000;
/** The pause between two log lines about one used link. Milliseconds. */
const REUSE_PAUSE_MS = 3_600_000;

/** Makes links that hand a secret over to a consumer once, and hands it over. */
export class HandoverService {
  readonly #options: HandoverServiceOptions;

  constructor(options: HandoverServiceOptions) {
    this.#options = options;
  }

  /** Makes a link for the present secret of a key. Throws `KeyNotFound`, `SecretNotAvailable` or `HandoverUnavailable`. */
  make(
    keyId: string,
    { request, host }: { readonly request: HandoverRequest; readonly host: string | undefined },
    change: ChangeContext,
  ): Promise<MadeHandover> {
    const { vault, reveal } = this.#options;
    const stored = (sealedSecret: Buffer | null): string | null =>
      reveal === 'once' || sealedSecret === null ? null : vault.open(keyId, sealedSecret);
    return this.#insert(keyId, { request, url: this.#pageUrl(host), secretOf: stored }, change);
  }

  /** Makes a link for a secret that was just made, in the same unit of work. Throws `HandoverUnavailable`. */
  makeFor(
    { key, secret }: { readonly key: { readonly id: string }; readonly secret: string },
    { request, host }: { readonly request: HandoverRequest; readonly host: string | undefined },
    change: ChangeContext,
  ): Promise<MadeHandover> {
    return this.#insert(key.id, { request, url: this.#pageUrl(host), secretOf: () => secret }, change);
  }

  /** The links of a key, newest first. */
  list(keyId: string, page: Omit<HandoverPage, 'nowMs'>): Promise<readonly FoundHandover[]> {
    return this.#options.repository.list(keyId, { ...page, nowMs: this.#options.clock.nowMs() });
  }

  count(keyId: string): Promise<number> {
    return this.#options.repository.count(keyId);
  }

  /** Throws `HandoverNotFound`, or `HandoverGone` for a link that is used already. */
  async revoke(keyId: string, handoverId: string, change: ChangeContext): Promise<void> {
    const revoked = isHandoverId(handoverId)
      ? await this.#options.repository.revoke(keyId, handoverId, change)
      : undefined;
    if (revoked === undefined) throw new HandoverNotFound();
    if (revoked.usedAtMs !== null) throw new HandoverGone('used', revoked.usedAtMs);
  }

  /** What a link is, for its consumer; nothing is used up. Clients take turns by their `address`. Throws `HandoverNotFound`. */
  async show(token: string, address: string): Promise<FoundHandover> {
    const { repository, clock } = this.#options;
    return this.#found(token, address, (digest) => repository.findByDigest(digest, clock.nowMs()));
  }

  /** Hands the secret over; the link is dead from then on. Throws `HandoverNotFound` or `HandoverGone`. */
  async reveal(
    token: string,
    address: string,
    change: ChangeContext,
  ): Promise<{ readonly handover: Handover; readonly keyName: string; readonly secret: string }> {
    const { repository, vault } = this.#options;
    const open = (id: string, sealed: Buffer) => vault.open(handoverSeal(id), sealed);
    const { handover, state, keyName, secret } = await this.#found(token, address, (digest) =>
      repository.use(digest, open, change),
    );
    if (secret === undefined || keyName === null) throw new HandoverGone(state, handover.usedAtMs);
    return { handover, keyName, secret };
  }

  /** Called each time that a used link is opened. Whether a log line about that is due: at most one an hour for each link. */
  noteReuse({ id }: Handover): boolean {
    const { reuses, clock } = this.#options;
    const nowMs = clock.monotonicMs();
    const loggedAtMs = reuses.get(id);
    if (loggedAtMs !== undefined && nowMs - loggedAtMs < REUSE_PAUSE_MS) return false;
    reuses.set(id, nowMs);
    return true;
  }

  async prune(goesOn?: () => boolean): Promise<void> {
    const { repository, clock } = this.#options;
    await repository.prune(clock.nowMs(), KEPT_MS, goesOn);
  }

  async #insert(keyId: string, link: NewLink, change: ChangeContext): Promise<MadeHandover> {
    if (!isKeyId(keyId)) throw new KeyNotFound();
    const { repository, vault, random } = this.#options;
    const { ttlSeconds, note = null } = link.request;
    const id = this.#options.makeId();
    const token = createHandoverToken(random);
    const expiresAtMs = change.atMs + ttlSeconds * 1000;
    const made = await repository.insert(
      {
        ...{ id, keyId, note, createdAtMs: change.atMs, expiresAtMs, tokenDigest: handoverDigest(token) },
        seal: (sealedSecret) => {
          const secret = link.secretOf(sealedSecret);
          return secret === null ? null : vault.seal(handoverSeal(id), secret);
        },
      },
      change,
    );
    if (made === 'key_not_found') throw new KeyNotFound();
    if (made === 'secret_not_available') throw new SecretNotAvailable();
    return { handoverId: id, url: `${link.url}#${token}`, expiresAtMs };
  }

  #pageUrl(host: string | undefined): string {
    const url = this.#options.pageUrl(host);
    if (url === undefined) throw new HandoverUnavailable();
    return url;
  }

  /** A text that can't be a token causes no query. */
  async #found<Found>(
    token: string,
    address: string,
    find: (digest: Buffer) => Promise<Found | undefined>,
  ): Promise<Found> {
    if (!isHandoverToken(token)) throw new HandoverNotFound();
    const { site } = sitesOf(address);
    const found = await this.#options.lookUps.run(() => find(handoverDigest(token)), site);
    if (found === undefined) throw new HandoverNotFound();
    return found;
  }
}

interface NewLink {
  readonly request: HandoverRequest;
  readonly url: string;
  /** The secret to hand over; null if there is none. */
  readonly secretOf: (sealedSecret: Buffer | null) => string | null;
}
