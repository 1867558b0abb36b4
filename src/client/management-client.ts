// The room `client`: the typed client of the management interface.
// In: the address of a gateway, a token, and the types that `docs/openapi.json` gives.
// Out: a function for each path, whose failures are a `ManagementFault`.

import createClient, { type Client } from 'openapi-fetch';
import { abortableFetch } from './abortable-fetch.ts';
import type { paths } from './management-api.ts';
import { ManagementFault, UnreadableBody } from './management-fault.ts';

/** The management interface, typed by its OpenAPI document. Everything that speaks to it from outside of the gateway uses this. */
export type ManagementClient = Client<paths>;

export interface ManagementClientOptions {
  /** Of the port that management responds on. A path in it is put before those of the interface. */
  readonly url: string;
  /** Null: the requests have no `Authorization`. A browser adds the cookie of a session. */
  readonly token: string | null;
  /** Sent with each request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Sends a request; `fetch` itself where it is missing. */
  readonly fetch?: (request: Request) => Promise<Response>;
}

/**
 * A client that authenticates with a root token, an admin token or the secret of a session. A call rejects with a `ManagementFault` if it succeeds at a server that
 * is not the management interface.
 */
export function createManagementClient({
  url,
  token,
  headers,
  fetch: send = (request) => abortableFetch(request),
}: ManagementClientOptions): ManagementClient {
  return createClient<paths>({
    baseUrl: url.replace(/\/+$/, ''),
    headers: { ...headers, ...(token !== null && { authorization: `Bearer ${token}` }) },
    // A redirect would lead a token, or the body of a change, to another place than the one that was named.
    redirect: 'error',
    fetch: async (request) => {
      const response = await send(request);
      if (!response.ok || isOfManagement(response)) return response;
      await response.body?.cancel();
      throw new ManagementFault(response, undefined);
    },
  });
}

/** Every response of the management interface has an id, and every success one of its formats. */
function isOfManagement({ headers }: Response): boolean {
  const contentType = headers.get('content-type') ?? '';
  return (
    headers.has('x-request-id') && /^(application\/(json|yaml)|text\/(csv|event-stream))\b/.test(contentType)
  );
}

/** The body of a successful response. Throws a `ManagementFault` for any other, and `UnreadableBody` if it is not JSON. */
export async function bodyOf<T>(
  call: Promise<{ readonly data?: T; readonly error?: unknown; readonly response: Response }>,
): Promise<NonNullable<T>> {
  const { data, error, response } = await readable(call);
  if (response.ok && data !== undefined && data !== null) return data;
  throw new ManagementFault(response, error);
}

/** Resolves with any response of a call. Rejects with `UnreadableBody` if the body of a success is not JSON. */
export async function readable<T>(call: Promise<T>): Promise<T> {
  return call.catch((fault: unknown) => {
    throw fault instanceof SyntaxError ? new UnreadableBody(fault) : fault;
  });
}
