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

/** The client of a token, and its stream of events. Calls `onUnauthorized` when the token is no longer valid. */
export function connectGateway(token: string, onUnauthorized: () => void): Gateway {
  const client = createGatewayClient(token, onUnauthorized);
  let types = '';
  return {
    client,
    feed: new EventFeed(streamOf(client, senderFor(onUnauthorized), () => types)),
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

/** The generated client for the gateway that served this page. Calls `onUnauthorized` when the token is no longer valid. */
export function createGatewayClient(token: string, onUnauthorized: () => void): ManagementClient {
  return createManagementClient({
    url: window.location.origin,
    token,
    fetch: senderFor(onUnauthorized),
  });
}

function senderFor(onUnauthorized: () => void): (request: Request) => Promise<Response> {
  return async (request) => {
    const response = await fetch(request, { cache: 'no-store', credentials: 'omit' });
    if (response.status === 401) onUnauthorized();
    return response;
  };
}
