/** The claims of a token or of the userinfo endpoint. */
export type Claims = Readonly<Record<string, unknown>>;

/**
 * The values of a claim; undefined if it is missing. A name with dots may also be a path: `realm_access.roles`. The claim `scope` is a list
 * in a text (RFC 8693, section 4.2).
 */
export function claimValues(claims: Claims, name: string): readonly string[] | undefined {
  const value = claimOf(claims, name);
  if (value === undefined || value === null) return undefined;
  if (name === 'scope' && typeof value === 'string') return value.split(' ');
  return [value].flat().filter((each): each is string => typeof each === 'string');
}

function claimOf(claims: Claims, name: string): unknown {
  return Object.hasOwn(claims, name) ? claims[name] : valueAt(claims, name.split('.'));
}

function valueAt(claims: Claims, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (part, name) =>
      typeof part === 'object' && part !== null && Object.hasOwn(part, name)
        ? Reflect.get(part, name)
        : undefined,
    claims,
  );
}

/**
 * The claims without those that are null, which count as missing (OpenID Connect Core 5.3.2). Where the e-mail address is null,
 * `email_verified` is left out too.
 */
export function withoutNull(claims: Claims): Claims {
  const isSaid = (name: string) =>
    claims[name] !== null && (name !== 'email_verified' || claims.email !== null);
  return Object.fromEntries(Object.entries(claims).filter(([name]) => isSaid(name)));
}

/** Why a claim may be missing, for the log; undefined if nothing explains it. */
export function explainMissing(claims: Claims, name: string): string | undefined {
  const sources = claims._claim_names;
  const isElsewhere = typeof sources === 'object' && sources !== null && Object.hasOwn(sources, name);
  if (isElsewhere || claims.hasgroups === true || claims.hasgroups === 'true')
    return `the provider names a link instead of the claim ${name}, because the person has too many groups`;
  return undefined;
}

/** A claim that is a text for people: without control characters and line breaks, cut to 255 characters. */
export function textClaim(claims: Claims, name: string): string | undefined {
  const value = claims[name];
  if (typeof value !== 'string') return undefined;
  const text = [...value.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, ' ').trim()].slice(0, 255).join('');
  return text === '' ? undefined : text;
}

/**
 * The claims of an ID token and of the userinfo endpoint, both without null. What the signed token says comes first. The claim `name` is that of
 * the endpoint where the token has another part of the object to which its path leads.
 */
export function mergedClaims(token: Claims, userInfo: Claims | undefined, name: string): Claims {
  if (userInfo === undefined) return token;
  const [naming, other] = token.email === undefined ? [userInfo, token] : [token, userInfo];
  // Whether an address is verified is said of that address: it says nothing about another one.
  const isOfAnother = other.email !== undefined && other.email !== naming.email;
  const verified = naming.email_verified ?? (isOfAnother ? undefined : other.email_verified);
  const merged = { ...userInfo, ...token, email_verified: verified };
  return claimValues(merged, name) === undefined ? { ...merged, [name]: claimOf(userInfo, name) } : merged;
}

/** The e-mail address, unless the provider says that it has not verified it. Some providers write truth values as texts. */
export function emailOf(claims: Claims): string | null {
  const verified = claims.email_verified ?? true;
  return verified === true || verified === 'true' ? (textClaim(claims, 'email') ?? null) : null;
}

/**
 * Whether the values of a claim may grant something. An e-mail address that the provider has not verified may be the address of someone
 * else.
 */
export function isTrusted(claims: Claims, name: string): boolean {
  return name !== 'email' || claims.email_verified === true;
}
