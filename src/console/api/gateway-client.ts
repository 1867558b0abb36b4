import { createManagementClient, type ManagementClient } from '../../client/management-client.ts';

/** The generated client for the gateway that served this page. Calls `onUnauthorized` when the token is no longer valid. */
export function createGatewayClient(token: string, onUnauthorized: () => void): ManagementClient {
  return createManagementClient({
    url: window.location.origin,
    token,
    fetch: async (request) => {
      const response = await fetch(request, { cache: 'no-store', credentials: 'omit' });
      if (response.status === 401) onUnauthorized();
      return response;
    },
  });
}
