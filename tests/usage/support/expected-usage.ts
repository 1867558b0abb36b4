import { expect } from '@jest/globals';
import type { CompletedRequest } from '../../../src/usage/usage-buffer.ts';
import type { KeyUsage } from '../../../src/usage/usage-counts.ts';
import { requestOfMix } from './request-mix.ts';

/** What the detail response must say of a key after these requests and no others, counted by other means than ours. */
export function expectedUsage(
  keyId: string,
  requests: readonly CompletedRequest[],
): Omit<KeyUsage, 'lastUsedAtMs'> & { readonly lastUsedAtMs: unknown } {
  const own = requests.filter((request) => request.keyId === keyId);
  const buffer = (names: readonly CompletedRequest[]) => ({
    requests: names.length,
    successful: names.filter(({ successful }) => successful).length,
    failed: names.filter(({ successful }) => !successful).length,
  });
  const groups = (nameOf: (request: CompletedRequest) => string) =>
    [...Map.groupBy(own, nameOf)].toSorted(
      ([nameA, a], [nameB, b]) => b.length - a.length || (nameA < nameB ? -1 : 1),
    );
  return {
    ...buffer(own),
    lastUsedAtMs: own.length === 0 ? null : expect.any(Number),
    endpoints: groups(({ endpoint }) => endpoint).map(([endpoint, all]) => ({
      endpoint,
      ...buffer(all),
      averageResponseTimeMs: meanMs(all),
    })),
    customers: groups(({ customerId }) => customerId).map(([customerId, all]) => ({
      customerId,
      ...buffer(all),
    })),
  };
}

/** The requests with these numbers of the mix. */
export function mix(from: number, to: number, keyIds: readonly string[]): readonly CompletedRequest[] {
  return Array.from({ length: to - from }, (_, index) => requestOfMix(from + index, keyIds));
}

function meanMs(requests: readonly CompletedRequest[]): number {
  const times = requests.flatMap(({ responseTimeMs }) =>
    responseTimeMs === null ? [] : [Math.round(responseTimeMs * 1000)],
  );
  const sum = times.reduce((total, us) => total + us, 0);
  return times.length === 0 ? 0 : Math.round(sum / times.length / 10) / 100;
}
