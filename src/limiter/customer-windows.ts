import type { Limit } from './request-limits.ts';

/** Most open windows of customers for a key. Further customers share one for each limit, so that made-up ids can't fill the store. */
export const MAX_CUSTOMER_WINDOWS = 10_000;

/** The customer id of the window that the customers beyond `MAX_CUSTOMER_WINDOWS` share. */
export const OTHER_CUSTOMERS = '__other__';

/** Names the window of a customer among those of the key. */
export function customerWindowName({ windowName }: Limit, customerId: string): string {
  return `${windowName}:${customerId}`;
}

/** Names the window in which a request was counted. `isShared`: its customer is beyond the bound. */
export function windowNameOf(limit: Limit, customerId: string, isShared: boolean): string {
  if (limit.per === 'key') return limit.windowName;
  return customerWindowName(limit, isShared ? OTHER_CUSTOMERS : customerId);
}
