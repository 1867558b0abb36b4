import { QueryClient } from '@tanstack/react-query';
import { faultKind } from './fault-kind.ts';

/** The cache of the data that was read with one token. */
export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        // Only failures that may pass are retried, once; after that the next poll tries again. A timeout has lasted long enough.
        retry: (failures, error) => failures < 1 && faultKind(error) === 'unavailable' && !isTimeout(error),
        retryDelay: 500,
        staleTime: 2000,
        // Polls continue if the browser believes that it is offline: the gateway may run on this machine.
        networkMode: 'always',
      },
      // The response to a change may contain a secret: it is dropped when the form closes.
      mutations: { networkMode: 'always', gcTime: 0 },
    },
  });
}

function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError';
}
