import type { Principal } from '../permissions/principal.ts';
import type { Precondition } from '../platform/precondition.ts';

/** Who makes a change. */
export interface Actor {
  /** `key`: a consumer that changes its own key. `gateway`: the gateway itself. */
  readonly type: 'root' | 'token' | 'person' | 'program' | 'config' | 'key' | 'gateway';
  /** The id of the admin token or the key, or the subject by which the identity provider knows a person or a program; null for the others. */
  readonly id: string | null;
  readonly name: string;
  /** Of a person; missing if there is none. */
  readonly email?: string;
}

/** Who makes the changes of a principal. */
export function actorOf({ type, id, name, identity }: Principal): Actor {
  if (identity === undefined) return { type, id, name };
  const { subject, email } = identity;
  return { type, id: subject, name, ...(email !== null && { email }) };
}

/**
 * Who makes a change, when and why. Services and repositories get it with each change, so that the record and its entry in the audit log
 * are written in one transaction.
 */
export interface ChangeContext {
  readonly actor: Actor;
  /** The time of the change. Milliseconds since 1970. */
  readonly atMs: number;
  /** The actor's reason, at most 256 characters; null = none given. */
  readonly reason: string | null;
  /** The id in the response's `X-Request-Id`. */
  readonly requestId: string;
  /** The address of the client. */
  readonly address: string;
  /** For this change, only the keys with all of these tags exist; empty: all keys do. */
  readonly onlyTags: readonly string[];
  /** The precondition for the changed record; undefined: none. A request that changes several records has none. */
  readonly expects: Precondition | undefined;
  /** The job that the change belongs to; missing: none. */
  readonly jobId?: string;
}
