import { TollgateError } from '../../errors.ts';

/** The path does not support the method, or no path does; `allowed` lists the methods that it supports (RFC 9110 section 15.5.6). */
export class MethodNotAllowed extends TollgateError {
  readonly allowed: readonly string[];

  constructor(allowed: readonly string[], message: string) {
    super('method_not_allowed', message);
    this.allowed = allowed;
  }
}

/** The methods of RFC 9110 and 5789 that are forwarded: what the backend makes of them is not known here. */
const FORWARDED = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT'] as const;

/** The response to TRACE and CONNECT. */
export function neverForwarded(method: 'TRACE' | 'CONNECT'): MethodNotAllowed {
  return new MethodNotAllowed(FORWARDED, `The method ${method} is not allowed.`);
}
