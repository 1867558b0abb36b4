import { errors } from 'jose';
import {
  AuthorizationResponseError,
  ClientError,
  ResponseBodyError,
  WWWAuthenticateChallengeError,
} from 'openid-client';
import { SignInFailure } from './sign-in-failure.ts';

/** Codes of `openid-client` and `jose` for a provider that does not respond as one. */
const UNAVAILABLE: ReadonlySet<string> = new Set([
  'OAUTH_TIMEOUT',
  'OAUTH_ABORT',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON',
  'OAUTH_PARSE_ERROR',
  'ERR_JWKS_TIMEOUT',
  'ERR_JOSE_GENERIC',
  'ERR_JWKS_INVALID',
]);
/** Errors of the token endpoint that are about the gateway's client or the provider itself, not about the person. */
const NOT_THE_PERSON: ReadonlySet<string> = new Set([
  'invalid_client',
  'unauthorized_client',
  'server_error',
  'temporarily_unavailable',
  'slow_down',
]);

/** The failure for what a call of the provider has thrown. Keeps no text of the provider but the code of its error. */
export function providerFailure(error: unknown): SignInFailure {
  if (error instanceof SignInFailure) return error;
  if (error instanceof AuthorizationResponseError) return rejected(error.error);
  if (error instanceof ResponseBodyError) {
    const isAway = error.status >= 500 || NOT_THE_PERSON.has(error.error);
    return isAway ? new SignInFailure('provider_unavailable', codeIn(error.error)) : rejected(error.error);
  }
  if (error instanceof WWWAuthenticateChallengeError) {
    if (error.status >= 500) return new SignInFailure('provider_unavailable', `status ${error.status}`);
    return rejected(`status ${error.status}`);
  }
  // `openid-client` wraps what `boundedFetch` throws.
  if (error instanceof ClientError && error.cause instanceof SignInFailure) return error.cause;
  const code = codeOf(error);
  if (error instanceof ClientError || error instanceof errors.JOSEError)
    return new SignInFailure(
      code !== undefined && UNAVAILABLE.has(code) ? 'provider_unavailable' : 'response_invalid',
      code,
    );
  // `fetch` rejects with a TypeError, whose cause says why.
  if (error instanceof TypeError)
    return new SignInFailure('provider_unavailable', codeOf(error.cause) ?? code);
  throw error;
}

function rejected(code: string): SignInFailure {
  return new SignInFailure('provider_rejected', codeIn(code));
}

/** A code that the provider or a link has sent: only if it looks like one. */
function codeIn(text: string): string | undefined {
  return /^[a-z0-9_ ]{1,64}$/.test(text) ? text : undefined;
}

function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
