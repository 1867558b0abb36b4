/** The customer of a request that names none. */
export const ANONYMOUS_CUSTOMER = 'anonymous';

/** The id of a customer: 1 to 128 printable ASCII characters. */
export const CUSTOMER_ID = /^[\x20-\x7e]{1,128}$/;

/** The customer whose request it is, from the value of the customer header: `anonymous` where the value is no id. */
export function customerOf(value: string | string[] | undefined): string {
  return typeof value === 'string' && CUSTOMER_ID.test(value) ? value : ANONYMOUS_CUSTOMER;
}
