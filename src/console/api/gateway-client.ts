import { createManagementClient, type ManagementClient } from '../../client/management-client.ts';
import { BATCHED_TYPE, EVENT_TYPES, TEST_TYPE } from '../../events/event-types.ts';
import { EventFeed, streamOf } from './event-feed.ts';

/** What the pages reach the gateway by. */
export interface Gateway {
  readonly client: ManagementClient;
  readonly feed: EventFeed;
  /** Says which scopes the token has: the feed asks for the events that they let it hear. */
  readonly setScopes: (scopes: readonly string[]) => void;
}

/** The client of a token or, without one, of the browser's session, and its stream of events. Calls `onUnauthorized` when it is no longer valid. */
export function connectGateway(token: string | null, onUnauthorized: () => void): Gateway {
  const client = createGatewayClient(token, onUnauthorized);
  let types = '';
  return {
    client,
    feed: new EventFeed(streamOf(client, senderFor(token, onUnauthorized), () => types)),
    setScopes: (scopes) => {
      types = followedTypes(scopes).join(',');
    },
  };
}

/** No usage: while it is heard, the gateway makes an event for each key and hour, and no page needs these. */
function followedTypes(scopes: readonly string[]): readonly string[] {
  return Object.entries(EVENT_TYPES)
    .filter(([type, { scope }]) => type !== BATCHED_TYPE && type !== TEST_TYPE && scopes.includes(scope))
    .map(([type]) => type);
}

/** The generated client for the gateway that served this page, with a token or the browser's session. */
export function createGatewayClient(token: string | null, onUnauthorized: () => void): ManagementClient {
  return createManagementClient({
    url: window.location.origin,
    token,
    // The gateway accepts the cookie of a session only together with it: no form can send it.
    headers: { 'Tollgate-Console': '1' },
    fetch: senderFor(token, onUnauthorized),
  });
}

/** Sends either the token or the cookie, never both. */
function senderFor(
  token: string | null,
  onUnauthorized: () => void,
): (request: Request) => Promise<Response> {
  const credentials = token === null ? 'same-origin' : 'omit';
  return async (request) => {
    const response = await fetch(request, { cache: 'no-store', credentials });
    if (response.status === 401) onUnauthorized();
    return response;
  };
}
