/**
 * What one `Authorization` value presents. `missing`: no value, or another scheme than Bearer (RFC 6750 section 3.1 counts an
 * unsupported scheme as no credential); `malformed`: the Bearer scheme without a token68 after it.
 */
export type BearerCredential =
  | { readonly kind: 'missing' }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'token'; readonly token: string };

const MISSING: BearerCredential = Object.freeze({ kind: 'missing' });
const MALFORMED: BearerCredential = Object.freeze({ kind: 'malformed' });

/**
 * Reads `Bearer <token68>` (RFC 9110 section 11.4): the scheme in any case, one or more spaces, the token as it is. Never throws;
 * it runs for every proxied request, so one pass over the value and one small object is all it costs.
 */
export function readBearer(authorization: string | undefined): BearerCredential {
  if (authorization === undefined || !hasBearerScheme(authorization)) return MISSING;
  let start = SCHEME.length;
  while (authorization.charCodeAt(start) === SPACE) start += 1;
  const token = authorization.slice(start);
  return start > SCHEME.length && TOKEN68.test(token) ? { kind: 'token', token } : MALFORMED;
}

const SCHEME = 'bearer';
const SPACE = 0x20;
const LOWER_CASE_BIT = 0x20;

/** The two classes share no character, so a mismatch is found in one pass. */
const TOKEN68 = /^[A-Za-z0-9\-._~+/]+=*$/;

/** Whether the value's first word is `Bearer`: `Bearerish x` is another scheme. */
function hasBearerScheme(value: string): boolean {
  for (let i = 0; i < SCHEME.length; i += 1) {
    if ((value.charCodeAt(i) | LOWER_CASE_BIT) !== SCHEME.charCodeAt(i)) return false;
  }
  return value.length === SCHEME.length || value.charCodeAt(SCHEME.length) === SPACE;
}
