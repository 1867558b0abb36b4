import { ANONYMOUS_CUSTOMER } from '../limiter/limit.ts';

const CUSTOMER_ID = /^[\x20-\x7e]{1,128}$/;

/** Whose request it is, from the value of the customer header: printable, at most 128 characters, otherwise `anonymous`. */
export function customerOf(value: string | string[] | undefined): string {
  return typeof value === 'string' && CUSTOMER_ID.test(value) ? value : ANONYMOUS_CUSTOMER;
}
