import { QueryClient } from '@tanstack/react-query';
import { faultKind } from './fault-kind.ts';

/** The cache of what was read, for one signed-in token. */
export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        // What does not pass by itself is not tried again; what does is tried with the next poll.
        retry: (failures, error) => failures < 1 && faultKind(error) === 'unavailable',
        retryDelay: 500,
        staleTime: 2000,
        // Polls are made also where the browser believes that it is offline: the gateway may be on this machine.
        networkMode: 'always',
      },
      // The response to a change may have a secret in it: it leaves the memory with the form.
      mutations: { networkMode: 'always', gcTime: 0 },
    },
  });
}
