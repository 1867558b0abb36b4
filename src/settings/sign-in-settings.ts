import { LOOPBACK_HOST } from '../platform/loopback-host.ts';
import { type Parse, pattern, plainUrl, text } from './setting-parsers.ts';

/** Names of Microsoft's issuers for the accounts of any organization. */
const ANY_TENANT = /^\/(?:common|organizations|consumers)(?:\/|$)/i;

/** The identifier of an OpenID provider (OpenID Connect Discovery 1.0, section 3): `https`, without query and fragment. */
export const issuer: Parse<URL> = (value) => {
  const url = secureUrl(value, 'like https://login.example.com/realms/main');
  if (url.hostname === 'login.microsoftonline.com' && ANY_TENANT.test(url.pathname))
    throw new Error('must name one tenant: with this one accounts of every organization could sign in');
  return url;
};

/** The origin at which browsers reach the management interface. */
export const publicOrigin: Parse<string> = (value) => {
  const url = secureUrl(value, 'like https://gateway-admin.example.com');
  if (url.pathname !== '/') throw new Error('must not have a path: the console is at /tollgate/console');
  return url.origin;
};

function secureUrl(value: string, example: string): URL {
  const url = URL.parse(value);
  const isSecure =
    url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK_HOST.test(url.hostname));
  if (url === null || !isSecure)
    throw new Error(`must be a URL with https, or with http of this machine, ${example}`);
  return plainUrl(url);
}

/** A client's identifier or an audience: visible ASCII and spaces (RFC 6749, appendix A.1). */
export const clientText: Parse<string> = text(
  (value) => /^[\x20-\x7e]{1,512}$/.test(value),
  'at most 512 visible ASCII characters',
);

/** OAuth scopes, separated by spaces (RFC 6749, section 3.3). Without `openid` the response would have no ID token. */
export const oauthScopes: Parse<string> = text(
  (value) =>
    value.split(' ').includes('openid') &&
    /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/.test(value),
  'scopes separated by one space, openid among them',
);

/** The name of a claim, or the path to one. */
export const claimName = pattern(
  /^[\x21-\x7e]{1,256}$/,
  'the name of a claim, like groups or realm_access.roles',
);

/** The settings of sign-in that depend on each other. */
export interface SignInValues {
  readonly oidcIssuer?: URL | null;
  readonly oidcClientId?: string | null;
  readonly oidcScopesMap?: ReadonlyMap<string, unknown> | null;
  readonly oidcAudience?: string | null;
  readonly publicAdminUrl?: string | null;
}

/** Faults between the settings of sign-in. One that is invalid by itself is undefined, and adds none. */
export function signInFaults(values: SignInValues): readonly string[] {
  const { oidcIssuer, oidcClientId, oidcScopesMap, oidcAudience, publicAdminUrl } = values;
  if (oidcIssuer === undefined) return [];
  if (oidcIssuer === null) {
    const set = { OIDC_CLIENT_ID: oidcClientId, OIDC_SCOPES_MAP: oidcScopesMap, OIDC_AUDIENCE: oidcAudience };
    return Object.entries(set)
      .filter(([, value]) => Boolean(value))
      .map(([name]) => `OIDC_ISSUER: is required with ${name}`);
  }
  const needed = {
    OIDC_CLIENT_ID: oidcClientId,
    OIDC_SCOPES_MAP: oidcScopesMap,
    PUBLIC_ADMIN_URL: publicAdminUrl,
  };
  const missing = Object.entries(needed).filter(([, value]) => value === null);
  const faults = missing.map(([name]) => `${name}: is required with OIDC_ISSUER`);
  // A program could present the ID token of a person: it is for the client, and no credential for others.
  if (oidcAudience && oidcAudience === oidcClientId)
    faults.push('OIDC_AUDIENCE: must differ from OIDC_CLIENT_ID, for which ID tokens are made');
  return faults;
}
