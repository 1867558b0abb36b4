import type { KeptValues } from './browser-storage.ts';
import type { FailedSignIn } from './provider-sign-in.ts';

/** Why the console is signed out: at the start, by choice, or because the gateway has rejected the token or the session. */
export type SignedOutReason = 'none' | 'signed-out' | 'token-expired' | 'session-ended';

export type Session =
  | {
      readonly status: 'signed-out';
      readonly reason: SignedOutReason;
      /** The sign-in with the identity provider that has just failed. */
      readonly failure?: FailedSignIn | undefined;
    }
  | {
      readonly status: 'signed-in';
      /** Null: a person has signed in with the identity provider, and the browser has the cookie of the session. */
      readonly token: string | null;
      /** Differs for each sign-in. */
      readonly serial: number;
    };

/** How the browser has come to the page. */
interface Start {
  /** Whether it has the cookie of a session. */
  readonly hasSession?: boolean | undefined;
  readonly failure?: FailedSignIn | undefined;
}

const STORAGE_KEY = 'tollgate.token';

/**
 * Holds who is at the console. A token is in memory, or for as long as the tab is open in `sessionStorage`: it is never written to
 * `localStorage`, a cookie or a URL. Of a person's session it only knows that there is one: no script can read the cookie.
 */
export class SessionStore {
  readonly #storage: KeptValues;
  readonly #listeners = new Set<() => void>();
  #serial = 0;
  #session: Session;
  /** How many components make or show what can't be shown again. */
  #keepers = 0;
  /** Where the first of them began. */
  #keptHref = '';
  /** What happens to the sign-in once there is none of them. */
  #waiting: (() => void) | undefined;

  /** A token of this tab comes before the session of the browser, and a failed sign-in is shown before either. */
  constructor(storage: KeptValues, { hasSession = false, failure }: Start = {}) {
    this.#storage = storage;
    const token = storage.getItem(STORAGE_KEY);
    const isSignedIn = failure === undefined && (token !== null || hasSession);
    this.#session = isSignedIn
      ? { status: 'signed-in', token, serial: this.#serial }
      : { status: 'signed-out', reason: 'none', ...(failure && { failure }) };
  }

  readonly current = (): Session => this.#session;

  /** `listener` is called after a change of `current` or `isKept`. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** `remember` keeps the token through a reload of this tab. */
  signIn(token: string, remember: boolean): void {
    if (remember) this.#storage.setItem(STORAGE_KEY, token);
    else this.#storage.removeItem(STORAGE_KEY);
    this.#begin(token);
  }

  /**
   * Makes the end or the replacement of the sign-in wait until the returned function is called, because the page makes or shows a secret that
   * can't be shown again. Signing out does not wait.
   */
  keep(): () => void {
    if (!this.isKept) this.#keptHref = window.location.href;
    this.#keepers += 1;
    this.#notify();
    return () => {
      this.#keepers -= 1;
      if (this.isKept) return;
      const waiting = this.#waiting;
      this.#waiting = undefined;
      waiting?.();
      this.#notify();
    };
  }

  /** Whether the page makes or shows a secret that can't be shown again. */
  get isKept(): boolean {
    return this.#keepers > 0;
  }

  /**
   * Undoes the browser's Back while the page is kept, and lets the browser ask before it leaves the page. To be called before the router
   * listens: Chromium calls listeners of the window in their order, and the router must not see that the address was another one.
   */
  guardPage(): () => void {
    const stay = () => this.isKept && window.history.pushState(null, '', this.#keptHref);
    const ask = (event: BeforeUnloadEvent) => this.isKept && event.preventDefault();
    window.addEventListener('popstate', stay);
    window.addEventListener('beforeunload', ask);
    return () => {
      window.removeEventListener('popstate', stay);
      window.removeEventListener('beforeunload', ask);
    };
  }

  /** The browser has the cookie of another person's session, who has signed in in another tab. */
  replaceSession(serial: number): void {
    this.#unlessKept(serial, () => this.#begin(null));
  }

  /** The same person has signed in again in another tab: the sign-in goes on, although the session before may have ended. */
  continueSession(serial: number): void {
    if (this.#isCurrent(serial)) this.#waiting = undefined;
  }

  /** The token has a new secret. The sign-in goes on. */
  replaceToken(serial: number, token: string): void {
    if (!this.#isCurrent(serial)) return;
    if (this.#storage.getItem(STORAGE_KEY) !== null) this.#storage.setItem(STORAGE_KEY, token);
    this.#change({ status: 'signed-in', token, serial });
  }

  signOut(): void {
    this.#end('signed-out');
  }

  /** The gateway has rejected the token or the session. Does nothing if there was another sign-in since. */
  expire(serial: number): void {
    const isToken = this.#session.status === 'signed-in' && this.#session.token !== null;
    this.#unlessKept(serial, () => this.#end(isToken ? 'token-expired' : 'session-ended'));
  }

  #unlessKept(serial: number, change: () => void): void {
    if (!this.#isCurrent(serial)) return;
    if (this.isKept) this.#waiting = () => this.#isCurrent(serial) && change();
    else change();
  }

  #isCurrent(serial: number): boolean {
    return this.#session.status === 'signed-in' && this.#session.serial === serial;
  }

  #begin(token: string | null): void {
    this.#serial += 1;
    this.#change({ status: 'signed-in', token, serial: this.#serial });
  }

  #end(reason: SignedOutReason): void {
    this.#storage.removeItem(STORAGE_KEY);
    this.#change({ status: 'signed-out', reason });
  }

  #change(session: Session): void {
    this.#session = session;
    this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}
