// The room `sign-in`: people who sign in with an OpenID provider, and their sessions. Loaded only with `OIDC_ISSUER`.
// In: the responses of the provider, and the secrets of sessions that requests present.
// Out: sessions, and a `Principal` with what the provider's claims grant.

import * as client from 'openid-client';
import type { ChangeContext } from '../audit/change-context.ts';
import { sitesOf } from '../platform/address-sites.ts';
import type { Clock } from '../platform/clock.ts';
import { ConcurrencyLimit } from '../platform/concurrency/concurrency-limit.ts';
import type { Logger } from '../platform/logger.ts';
import type { SecretVault } from '../secrets/secret-vault.ts';
import type {
  DeviceAuthorization,
  DeviceWait,
  Identity,
  IdentityProvider,
  SignInAttempt,
} from './identity-provider.ts';
import type { OpenedSession, Sessions } from './sessions.ts';
import { SIGN_IN_OUTCOMES, SignInFailure, type SignInOutcome } from './sign-in-failure.ts';
import type { SessionKind } from './signed-in-session.ts';

interface SignInOptions {
  readonly provider: Pick<IdentityProvider, 'authorizationUrl' | 'redeem' | 'startDevice' | 'redeemDevice'>;
  readonly sessions: Pick<Sessions, 'open'>;
  readonly vault: Pick<SecretVault, 'seal' | 'open'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Where an attempt came from, for the log and the audit log. */
export type AttemptContext = Pick<ChangeContext, 'requestId' | 'address'>;

/** An attempt that has begun: where the person goes, and what has to be presented with the response. */
export interface BegunAttempt {
  readonly url: URL;
  /** Encrypted. Only who holds it can finish the attempt. */
  readonly ticket: string;
}

/** The same for another device. */
export interface BegunDeviceAttempt {
  readonly device: Omit<DeviceAuthorization, 'deviceCode'>;
  readonly ticket: string;
}

/** How long a person may take at the provider. Milliseconds. */
const ATTEMPT_MS = 600_000;
/** The same on another device, where the provider says how long its code is valid: at most this. Seconds. */
const MAX_DEVICE_S = 3600;
/** Anyone may begin an attempt: a flood of them must not become a flood at the provider. */
const PROVIDER_CALLS = {
  maxRunning: 8,
  maxWaiting: 256,
  maxWaitingPerGroup: 16,
  overloaded: () => new SignInFailure('provider_unavailable', 'too many attempts at a time'),
};

/** What a ticket holds. */
type Ticket = { readonly expiresAtMs: number; readonly returnTo: string | null } & (
  | { readonly attempt: SignInAttempt }
  | { readonly deviceCode: string }
);

/**
 * Signs people in. Nothing is stored before the provider has confirmed who they are: an attempt is kept, encrypted, by the browser or the
 * command that began it, so that any replica can finish it and no other client can. Every method rejects with `SignInFailure`.
 */
export class SignIn {
  readonly #options: SignInOptions;
  readonly #calls = new ConcurrencyLimit(PROVIDER_CALLS);
  /** The attempts that have ended, by how. */
  readonly outcomes: Record<SignInOutcome, number>;

  constructor(options: SignInOptions) {
    this.#options = options;
    this.outcomes = Object.fromEntries(SIGN_IN_OUTCOMES.map((outcome) => [outcome, 0])) as SignIn['outcomes'];
  }

  /** `returnTo` comes back with the session. */
  begin(
    kind: SessionKind,
    redirectUri: string,
    returnTo: string | null,
    context: AttemptContext,
  ): Promise<BegunAttempt> {
    return this.#observed(context, async () => {
      const attempt: SignInAttempt = {
        state: client.randomState(),
        nonce: client.randomNonce(),
        codeVerifier: client.randomPKCECodeVerifier(),
        redirectUri,
      };
      const url = await this.#options.provider.authorizationUrl(attempt);
      return { url, ticket: this.#seal(kind, { attempt, returnTo }, ATTEMPT_MS) };
    });
  }

  /** `query` is that of the URL to which the provider has sent the browser. */
  async finish(
    kind: SessionKind,
    { ticket, query }: { readonly ticket: string | undefined; readonly query: string },
    context: AttemptContext,
  ): Promise<OpenedSession & { readonly returnTo: string | null }> {
    return this.#observed(context, async () => {
      const opened = this.#open(kind, ticket);
      if (!('attempt' in opened)) throw new SignInFailure('not_started');
      const { attempt, returnTo } = opened;
      // Of what the client sends only the query is used: the rest is known.
      const callback = new URL(attempt.redirectUri);
      callback.search = query;
      const identity = await this.#call(context, () => this.#options.provider.redeem(callback, attempt));
      return { ...(await this.#session(identity, kind, context)), returnTo };
    });
  }

  /** Whether the ticket is of an attempt that has not ended, and the query is the response to another one. */
  isOfOtherAttempt(
    kind: SessionKind,
    { ticket, query }: { readonly ticket: string | undefined; readonly query: string },
  ): boolean {
    try {
      const opened = this.#open(kind, ticket);
      return 'attempt' in opened && opened.attempt.state !== new URLSearchParams(query).get('state');
    } catch {
      return false;
    }
  }

  /** What `begin` was given as `returnTo`, also of an attempt that has failed; null if the ticket can't be used. */
  returnToOf(kind: SessionKind, ticket: string | undefined): string | null {
    try {
      return this.#open(kind, ticket).returnTo;
    } catch {
      return null;
    }
  }

  /** Undefined if the provider does not offer it, or not to the gateway's client. */
  beginDevice(context: AttemptContext): Promise<BegunDeviceAttempt | undefined> {
    return this.#observed(context, async () => {
      const started = await this.#call(context, () => this.#options.provider.startDevice());
      if (started === undefined) return undefined;
      const { deviceCode, ...device } = started;
      const expiresInS = Math.min(device.expiresInS, MAX_DEVICE_S);
      const ticket = this.#seal('command', { deviceCode, returnTo: null }, expiresInS * 1000);
      return { device: { ...device, expiresInS }, ticket };
    });
  }

  finishDevice(ticket: string, context: AttemptContext): Promise<OpenedSession | DeviceWait> {
    return this.#observed(context, async () => {
      const opened = this.#open('command', ticket);
      if (!('deviceCode' in opened)) throw new SignInFailure('not_started');
      const identity = await this.#call(context, () =>
        this.#options.provider.redeemDevice(opened.deviceCode),
      );
      return typeof identity === 'string' ? identity : this.#session(identity, 'command', context);
    });
  }

  async #session(identity: Identity, kind: SessionKind, context: AttemptContext): Promise<OpenedSession> {
    const opened = await this.#options.sessions.open(identity, kind, context);
    this.outcomes.signed_in += 1;
    const { id: sessionId, subject } = opened.session;
    this.#options.log.info(
      { event: 'sign_in', outcome: 'signed_in', ...context, sessionId, subject },
      'a person signed in',
    );
    return opened;
  }

  /** Counts and logs a failure. The log has its reason, and never a code or a token. */
  async #observed<Result>(context: AttemptContext, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof SignInFailure) {
        const { reason: outcome, detail } = error;
        this.outcomes[outcome] += 1;
        this.#options.log.warn({ event: 'sign_in', outcome, detail, ...context }, 'a sign-in failed');
      }
      throw error;
    }
  }

  /** Clients take turns, so that none of them keeps the others out: IPv4 addresses and IPv6 networks of 64 bits. */
  #call<Result>({ address }: AttemptContext, work: () => Promise<Result>): Promise<Result> {
    return this.#calls.run(work, sitesOf(address).site);
  }

  #seal(kind: SessionKind, content: Record<string, unknown>, validMs: number): string {
    const { vault, clock } = this.#options;
    const ticket = JSON.stringify({ ...content, expiresAtMs: clock.nowMs() + validMs });
    return vault.seal(contextOf(kind), ticket).toString('base64url');
  }

  #open(kind: SessionKind, ticket: string | undefined): Ticket {
    const { vault, clock } = this.#options;
    if (ticket === undefined || ticket.length > LONGEST_TICKET) throw new SignInFailure('not_started');
    let content: Ticket;
    try {
      // `#seal` alone makes what this opens.
      content = JSON.parse(vault.open(contextOf(kind), Buffer.from(ticket, 'base64url'))) as Ticket;
    } catch {
      throw new SignInFailure('not_started');
    }
    if (content.expiresAtMs <= clock.nowMs()) throw new SignInFailure('not_started', 'too long ago');
    return content;
  }
}

const LONGEST_TICKET = 4096;

/** A ticket of a browser is none of a command. */
function contextOf(kind: SessionKind): string {
  return `sign-in attempt of a ${kind}`;
}
