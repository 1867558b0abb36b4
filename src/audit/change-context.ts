import type { Precondition } from '../platform/precondition.ts';

/** Who makes a change. */
export interface Actor {
  /** `key`: a consumer that changes its own key. */
  readonly type: 'root' | 'token' | 'config' | 'key';
  /** Of the admin token or the key; null for the others. */
  readonly id: string | null;
  readonly name: string;
}

/**
 * What a change needs besides what is changed. Services and repositories take it with each change, so that the record and its entry in
 * the audit log are written in one transaction.
 */
export interface ChangeContext {
  readonly actor: Actor;
  /** When the change is made. Milliseconds since 1970. */
  readonly atMs: number;
  /** Why, in the actor's words: at most 256 characters. Null: not given. */
  readonly reason: string | null;
  /** As in the response's `X-Request-Id`. */
  readonly requestId: string;
  /** Of the client. */
  readonly address: string;
  /** For this change, only the keys with all of these tags exist; empty: all keys do. */
  readonly onlyTags: readonly string[];
  /** What the record that is changed must be like; undefined: anything. A request that changes several records has none. */
  readonly expects: Precondition | undefined;
}
