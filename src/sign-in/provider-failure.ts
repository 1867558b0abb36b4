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
/** Errors that are about the gateway's client or the provider itself, not about the person. */
const NOT_THE_PERSON: ReadonlySet<string> = new Set([
  'invalid_client',
  'unauthorized_client',
  'server_error',
  'temporarily_unavailable',
  'slow_down',
]);
/** Errors of the device authorization endpoint for a client without the device grant: providers differ in which of them they send. */
const WITHOUT_DEVICE_GRANT: ReadonlySet<string> = new Set([
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_grant',
  'invalid_request',
]);
/** Statuses with which the userinfo endpoint rejects an access token, or the person to whom it belongs. */
const REJECTIONS: ReadonlySet<number> = new Set([400, 401, 403]);

/** The failure for what a call of the provider has thrown. Keeps no text of the provider but the code of its error. */
export function providerFailure(error: unknown): SignInFailure {
  if (error instanceof SignInFailure) return error;
  if (error instanceof AuthorizationResponseError || error instanceof ResponseBodyError) {
    // What the browser brings has no status (RFC 6749, section 4.1.2.1).
    const isAway = error instanceof ResponseBodyError && isAwayWith(error.status);
    return isAway || NOT_THE_PERSON.has(error.error)
      ? new SignInFailure('provider_unavailable', codeIn(error.error))
      : rejected(error.error);
  }
  if (error instanceof WWWAuthenticateChallengeError) {
    const status = `status ${error.status}`;
    return isAwayWith(error.status) ? new SignInFailure('provider_unavailable', status) : rejected(status);
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

/**
 * The same for the userinfo endpoint. A rejection should have a challenge (RFC 6750, section 3), but those of some providers have none:
 * it must not be taken for a provider that is away, which would keep the session.
 */
export function userInfoFailure(error: unknown): SignInFailure {
  const response = error instanceof ClientError ? error.cause : undefined;
  if (response instanceof Response && REJECTIONS.has(response.status))
    return rejected(`status ${response.status}`);
  return providerFailure(error);
}

/** Whether the device authorization endpoint says that the gateway's client may not use it. */
export function isWithoutDeviceGrant(error: unknown): boolean {
  return (
    error instanceof ResponseBodyError && !isAwayWith(error.status) && WITHOUT_DEVICE_GRANT.has(error.error)
  );
}

/** Whether a response with this status is about the provider, which is overloaded or failing, and not about the person. */
function isAwayWith(status: number): boolean {
  return status >= 500 || status === 408 || status === 429;
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
