// The entry `tollgate/client` of the package: what programs of others may use of the room, and nothing else.

import { createManagementClient, type ManagementClient } from './management-client.ts';
import { type RetryOptions, retryingFetch } from './retrying-fetch.ts';

export { type PageCursor, pagesOf } from './list-pages.ts';
export type { components, operations, paths } from './management-api.ts';
export { bodyOf, type ManagementClient } from './management-client.ts';
export { ManagementFault } from './management-fault.ts';
export type { RetryOptions } from './retrying-fetch.ts';

export interface TollgateClientOptions extends RetryOptions {
  /** Of the port that management responds on. A path in it is put before those of the interface. */
  readonly url: string;
  /** A root token or an admin token. */
  readonly token: string;
  /** Sent with each request. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A client of the management interface that retries where that is safe, and gives each POST an `Idempotency-Key`. */
export function createTollgateClient({
  url,
  token,
  headers = {},
  ...retries
}: TollgateClientOptions): ManagementClient {
  return createManagementClient({ url, token, headers, fetch: retryingFetch(retries) });
}
