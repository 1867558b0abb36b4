import { TollgateError } from '../../errors.ts';

/** The path, or the whole gateway, does not support the method; `allowed` lists the supported ones (RFC 9110 section 15.5.6). */
export class MethodNotAllowed extends TollgateError {
  readonly allowed: readonly string[];

  constructor(allowed: readonly string[], message: string) {
    super('method_not_allowed', message);
    this.allowed = allowed;
  }
}

/** The methods of RFC 9110 and 5789 that are forwarded. The gateway does not know which of them the backend supports. */
export const FORWARDED_METHODS = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT'] as const;

/** The response to TRACE and CONNECT. */
export function neverForwarded(method: 'TRACE' | 'CONNECT'): MethodNotAllowed {
  return new MethodNotAllowed(FORWARDED_METHODS, `The method ${method} is not allowed.`);
}
