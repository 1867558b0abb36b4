import { SCOPES, type Scope } from './scopes.ts';

/** Who makes a management request, and their permissions. */
export interface Principal {
  /**
   * `person`: someone who has signed in with an identity provider. `program`: one with an access token of that provider. `key`: a consumer,
   * whose requests are about its own key.
   */
  readonly type: 'root' | 'token' | 'person' | 'program' | 'key';
  /**
   * The id of the admin token, of the person's session or of the key, or a text that names the program; null for the root token. No two
   * principals have the same.
   */
  readonly id: string | null;
  readonly name: string;
  /** As the identity provider knows the person or the program; missing for others. */
  readonly identity?: { readonly subject: string; readonly email: string | null };
  readonly scopes: ReadonlySet<Scope>;
  /** For the principal, only the keys with all of these tags exist; empty: all keys do. */
  readonly onlyTags: readonly string[];
  /** The addresses and networks that requests may come from; null = any. */
  readonly allowedIps: readonly string[] | null;
  /** From this instant on the credential is rejected; null = never. Milliseconds since 1970. */
  readonly expiresAtMs: number | null;
  /** Of the admin token when it was presented, or of a consumer's secret; null for the root token. */
  readonly version: number | null;
}

/** What a person or a program may do, as an identity provider says it. */
export interface Grant {
  readonly scopes: readonly Scope[];
  /** Only keys with all of these tags exist for it; empty: all keys do. */
  readonly onlyTags: readonly string[];
}

/** The principal of a root token. */
export const ROOT: Principal = {
  type: 'root',
  id: null,
  name: 'root',
  scopes: new Set(SCOPES),
  onlyTags: [],
  allowedIps: null,
  expiresAtMs: null,
  version: null,
};

/** The principal of a consumer. Without scopes, it may only use endpoints that need none. `endsAtMs`: null for the key's present secret. */
export function consumerOf(
  { id, name }: { readonly id: string; readonly name: string },
  { version, endsAtMs }: { readonly version: number; readonly endsAtMs: number | null },
): Principal {
  return {
    type: 'key',
    id,
    name,
    scopes: new Set(),
    onlyTags: [],
    allowedIps: null,
    expiresAtMs: endsAtMs,
    version,
  };
}

/** The scopes that an endpoint needs: one, all of several, or null if any valid credential is enough. */
export type RequiredScope = Scope | readonly Scope[] | null;

/** The first required scope that the principal lacks; undefined if there is none. */
export function missingScope({ scopes }: Principal, required: RequiredScope): Scope | undefined {
  return requiredScopes(required).find((scope) => !scopes.has(scope));
}

/** The required scopes as a list. */
export function requiredScopes(required: RequiredScope): readonly Scope[] {
  return required === null ? [] : [required].flat();
}
