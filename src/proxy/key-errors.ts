import { MissingApiKey, STORE_UNAVAILABLE_MESSAGE, TollgateError } from '../errors.ts';
import { resembledManagementPath } from '../paths/path-matcher.ts';
import type { Exchange } from './exchange.ts';

/** The error of a request that presents no key. */
export function missingKey({ head }: Exchange): TollgateError {
  return withManagementPath(new MissingApiKey(), head.path);
}

/** Adds the management path that was probably meant, if the request's path resembles one: administrators may mistype it. */
export function withManagementPath(error: TollgateError, path: string): TollgateError {
  const meant = resembledManagementPath(path);
  if (meant === undefined || error.code === 'too_many_requests') return error;
  return new TollgateError(
    error.code,
    `${error.message} The management interface has ${meant}, on ADMIN_PORT where that is set.`,
  );
}

/** A store did not respond: the request can't be judged. */
export function unavailable(cause: unknown): TollgateError {
  return cause instanceof TollgateError
    ? cause
    : new TollgateError('store_unavailable', STORE_UNAVAILABLE_MESSAGE, cause);
}
