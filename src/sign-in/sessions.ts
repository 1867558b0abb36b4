import { actorOf, type ChangeContext } from '../audit/change-context.ts';
import { SessionNotFound, TollgateError } from '../errors.ts';
import type { Grant, Principal } from '../permissions/principal.ts';
import { isVisible } from '../permissions/visible-records.ts';
import type { Clock } from '../platform/clock.ts';
import { ConcurrencyLimit } from '../platform/concurrency/concurrency-limit.ts';
import { idMaker } from '../platform/id-maker.ts';
import type { Logger } from '../platform/logger.ts';
import type { Random } from '../platform/random.ts';
import { digestOfSecret } from '../secrets/secret-digest.ts';
import { createSecret, isWellFormedSecret } from '../secrets/secret-format.ts';
import type { SecretVault } from '../secrets/secret-vault.ts';
import { claimValues, emailOf, explainMissing, isTrusted, textClaim } from './claims.ts';
import type { Identity, IdentityProvider } from './identity-provider.ts';
import { grantOf, type ScopesMap } from './scopes-map.ts';
import { openSession, type ProviderTokens, sealSession } from './sealed-session.ts';
import type { SessionPage, SessionStore, StoredSession } from './session-store.ts';
import { SignInFailure } from './sign-in-failure.ts';
import {
  isSessionId,
  principalOfSession,
  SESSION_PREFIX,
  type Session,
  type SessionKind,
} from './signed-in-session.ts';

/** What `Sessions` is built from. */
export interface SessionsOptions {
  readonly store: SessionStore;
  readonly provider: Pick<IdentityProvider, 'renew'>;
  readonly vault: Pick<SecretVault, 'digestLookup' | 'digestLookups' | 'seal' | 'open'>;
  readonly claim: string;
  readonly map: ScopesMap;
  readonly sessionMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** A new session and its secret, which is never shown again. */
export interface OpenedSession {
  readonly session: Session;
  readonly secret: string;
}

/** How often the gateway asks the provider again what a person may do. */
const RENEW_EVERY_MS = 300_000;
/** When it asks again if the provider did not respond. */
const RETRY_MS = 30_000;
/** As with admin tokens. A group is a client. */
const LOOK_UPS = {
  maxRunning: 4,
  maxWaiting: 4096,
  maxWaitingPerGroup: 256,
  overloaded: () =>
    new TollgateError('overloaded', 'Too many sessions wait to be looked up. Try again shortly.'),
};

/**
 * Sessions of people. Nothing is cached, so that the end of a session applies from the next request on, on every replica. A session that is
 * used is renewed every five minutes; it ends if the provider rejects that or the map grants nothing any more. While the provider is away,
 * sessions go on until they expire.
 */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #makeId: () => string;
  readonly #lookUps = new ConcurrencyLimit(LOOK_UPS);

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#makeId = idMaker('ses_', options.clock, options.random);
  }

  /** Opens a session for a person. Throws `SignInFailure` with `no_scopes` if the map grants nothing. */
  async open(
    identity: Identity,
    kind: SessionKind,
    { requestId, address }: Pick<ChangeContext, 'requestId' | 'address'>,
  ): Promise<OpenedSession> {
    const { store, vault, clock, random, sessionMs } = this.#options;
    const grant = this.#grantOf(identity);
    const id = this.#makeId();
    const nowMs = clock.nowMs();
    const secret = createSecret(SESSION_PREFIX, random);
    const digest = digestOfSecret(secret);
    const session: Session = {
      ...{ id, kind, address, ...grant, ...personOf(identity) },
      ...{ createdAtMs: nowMs, expiresAtMs: nowMs + sessionMs },
      ...{ renewAtMs: nowMs + RENEW_EVERY_MS, lastUsedAtMs: nowMs },
    };
    const secrets = sealSession(id, { ...identity.tokens, digest: digest.toString('base64') }, vault);
    const actor = actorOf(principalOfSession(session));
    const change = { actor, atMs: nowMs, reason: null, requestId, address, onlyTags: [], expects: undefined };
    await store.insert({ session, ...secrets }, change);
    return { session, secret };
  }

  /**
   * The person whose session has the secret; undefined if there is none. `client` names the client that presents it; clients take turns.
   * Rejects with `StoreUnavailable`, or with `overloaded` if too many look-ups wait.
   */
  async authenticate(secret: string, kind: SessionKind, client: string): Promise<Principal | undefined> {
    if (!secret.startsWith(`${SESSION_PREFIX}_`) || !isWellFormedSecret(secret)) return undefined;
    const { store, vault } = this.#options;
    const lookups = vault.digestLookups(digestOfSecret(secret));
    const found = await this.#lookUps.run(() => store.findByLookup(lookups), client);
    if (found === undefined || found.session.kind !== kind) return undefined;
    const session = await this.#present(found);
    return session && principalOfSession(session);
  }

  /** Whether a session is still there, and may still do as much for as many keys. Renews it as a request does. */
  async isUnchanged(
    sessionId: string,
    { scopes, onlyTags }: Pick<Principal, 'scopes' | 'onlyTags'>,
  ): Promise<boolean> {
    const found = await this.#options.store.find(sessionId);
    const session = found && (await this.#present(found));
    if (session === undefined) return false;
    const has: ReadonlySet<string> = new Set(session.scopes);
    return has.isSupersetOf(scopes) && isVisible(onlyTags, session.onlyTags);
  }

  /** Newest first. */
  list(page: Omit<SessionPage, 'nowMs'>): Promise<readonly Session[]> {
    return this.#options.store.list({ ...page, nowMs: this.#options.clock.nowMs() });
  }

  count(page: Omit<SessionPage, 'nowMs' | 'limit' | 'beforeId'>): Promise<number> {
    return this.#options.store.count({ ...page, nowMs: this.#options.clock.nowMs() });
  }

  /** Throws `SessionNotFound`. */
  async end(sessionId: string, change: ChangeContext): Promise<void> {
    const existed = isSessionId(sessionId) && (await this.#options.store.remove(sessionId, change));
    if (!existed) throw new SessionNotFound();
  }

  /** Ends the session with this secret, if there is one. */
  async endOf(secret: string, context: Pick<ChangeContext, 'requestId' | 'address'>): Promise<void> {
    if (!isWellFormedSecret(secret)) return;
    const { store, vault } = this.#options;
    const found = await store.findByLookup(vault.digestLookups(digestOfSecret(secret)));
    if (found === undefined) return;
    await store.remove(found.session.id, this.#byGateway('the person signed in again', context));
  }

  /** The session as it is now; undefined if it has expired or ends. */
  async #present(found: StoredSession): Promise<Session | undefined> {
    const { store, clock } = this.#options;
    const { session } = found;
    const nowMs = clock.nowMs();
    if (session.expiresAtMs <= nowMs) return undefined;
    if (session.renewAtMs > nowMs) return session;
    if (!(await store.claimRenewal(session, nowMs + RENEW_EVERY_MS, nowMs))) {
      // Another request renews it, or has ended it.
      return (await store.find(session.id))?.session;
    }
    return this.#renewed(found);
  }

  async #renewed(found: StoredSession): Promise<Session | undefined> {
    const { store, provider, vault, clock, log } = this.#options;
    const { session } = found;
    const kept = openSession(found, vault);
    try {
      const sealTokens = (tokens: ProviderTokens) =>
        sealSession(session.id, { ...tokens, digest: kept.digest }, vault);
      const identity = await provider.renew(kept, session.subject, (tokens) =>
        store.replace(found, sealTokens(tokens)),
      );
      const { subject: _, ...person } = personOf(identity, session);
      const renewal = { ...this.#grantOf(identity), ...person };
      return (await store.renew(session.id, { ...renewal, ...sealTokens(identity.tokens) }))
        ? { ...session, ...renewal }
        : undefined;
    } catch (error) {
      if (!(error instanceof SignInFailure)) throw error;
      const { reason, detail } = error;
      const about = { event: 'session_renewal', sessionId: session.id, reason, detail };
      if (reason === 'provider_unavailable') {
        log.warn(about, 'a session could not be renewed, and goes on');
        const goesOn = await store.postponeRenewal(session.id, clock.nowMs() + RETRY_MS);
        return goesOn ? session : undefined;
      }
      log.info(about, 'a session ended at its renewal');
      await store.remove(session.id, this.#byGateway(`renewal: ${reason}`, { requestId: '', address: '' }));
      return undefined;
    }
  }

  #grantOf({ claims }: Identity): Grant {
    const { claim, map } = this.#options;
    const values = isTrusted(claims, claim) ? (claimValues(claims, claim) ?? []) : [];
    const grant = grantOf(map, values);
    if (grant !== undefined) return grant;
    throw new SignInFailure('no_scopes', explainMissing(claims, claim));
  }

  #byGateway(
    reason: string,
    { requestId, address }: Pick<ChangeContext, 'requestId' | 'address'>,
  ): ChangeContext {
    const actor = { type: 'gateway', id: null, name: 'gateway' } as const;
    const atMs = this.#options.clock.nowMs();
    return { actor, atMs, reason, requestId, address, onlyTags: [], expects: undefined };
  }
}

/** How a person is shown. A renewal without these claims keeps what is known. */
function personOf(
  { subject, claims }: Identity,
  known?: Pick<Session, 'name' | 'email'>,
): Pick<Session, 'subject' | 'name' | 'email'> {
  const email = 'email' in claims ? emailOf(claims) : (known?.email ?? null);
  const name =
    textClaim(claims, 'name') ?? known?.name ?? textClaim(claims, 'preferred_username') ?? email ?? subject;
  return { subject, name, email };
}
