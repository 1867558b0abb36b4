import { createManagementClient, type ManagementClient } from '../../client/management-client.ts';
import { EventFeed, streamOf } from './event-feed.ts';

/** What the pages reach the gateway by. */
export interface Gateway {
  readonly client: ManagementClient;
  readonly feed: EventFeed;
}

/** The client of a token, and its stream of events. Calls `onUnauthorized` when the token is no longer valid. */
export function connectGateway(token: string, onUnauthorized: () => void): Gateway {
  const client = createGatewayClient(token, onUnauthorized);
  return { client, feed: new EventFeed(streamOf(client, senderFor(onUnauthorized))) };
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
