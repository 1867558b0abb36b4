import { TollgateError } from '../errors.ts';

/** A method that a path does not have, or that nobody has here; `allowed` are those that it has (RFC 9110 section 15.5.6). */
export class MethodNotAllowed extends TollgateError {
  readonly allowed: readonly string[];

  constructor(allowed: readonly string[], message: string) {
    super('method_not_allowed', message);
    this.allowed = allowed;
  }
}

/** The methods of RFC 9110 and 5789 that are forwarded: what the backend makes of them is not known here. */
const FORWARDED = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT'] as const;

/** The answer to TRACE and CONNECT. */
export function neverForwarded(method: 'TRACE' | 'CONNECT'): MethodNotAllowed {
  return new MethodNotAllowed(FORWARDED, `The method ${method} is not allowed.`);
}
