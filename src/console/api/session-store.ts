/** Why the console is signed out: at the start, by choice, or because the gateway has rejected the token. */
export type SignedOutReason = 'none' | 'signed-out' | 'expired';

export type Session =
  | { readonly status: 'signed-out'; readonly reason: SignedOutReason }
  | { readonly status: 'signed-in'; readonly token: string };

const STORAGE_KEY = 'tollgate.token';

/**
 * Holds the token of the person at the console: in memory, or for as long as the tab is open in `sessionStorage`.
 * It is never written to `localStorage`, a cookie or a URL.
 */
export class SessionStore {
  readonly #storage: Storage;
  readonly #listeners = new Set<() => void>();
  #session: Session;

  constructor(storage: Storage) {
    this.#storage = storage;
    const token = storage.getItem(STORAGE_KEY);
    this.#session =
      token === null ? { status: 'signed-out', reason: 'none' } : { status: 'signed-in', token };
  }

  readonly current = (): Session => this.#session;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** `remember` keeps the token through a reload of this tab. */
  signIn(token: string, remember: boolean): void {
    if (remember) this.#storage.setItem(STORAGE_KEY, token);
    this.#change({ status: 'signed-in', token });
  }

  signOut(): void {
    this.#end('signed-out');
  }

  /** The gateway has rejected `token`. Does nothing if another token has been signed in since. */
  expire(token: string): void {
    if (this.#session.status === 'signed-in' && this.#session.token === token) this.#end('expired');
  }

  #end(reason: SignedOutReason): void {
    this.#storage.removeItem(STORAGE_KEY);
    this.#change({ status: 'signed-out', reason });
  }

  #change(session: Session): void {
    this.#session = session;
    for (const listener of this.#listeners) listener();
  }
}
