import type { CompletedRequest } from '../../../src/usage/usage-buffer.ts';
import { completed } from './sample-usage.ts';

/** The request with this number of a mix that everybody knows: some hot endpoints, some rare ones, failures, many customers. */
export function requestOfMix(number: number, keyIds: readonly string[]): CompletedRequest {
  const roll = (number * 2_654_435_761) % 4_294_967_296;
  return completed({
    keyId: keyIds[number % keyIds.length] ?? '',
    endpoint: roll % 5 === 0 ? `/v1/rare/${roll % 211}` : `/v1/hot/${roll % 7}`,
    customerId: roll % 3 === 0 ? 'anonymous' : `customer ${roll % 307}`,
    status: roll % 11 === 0 ? 500 : 200,
    successful: roll % 11 !== 0,
    responseTimeMs: roll % 13 === 0 ? null : (roll % 100_000) / 1000,
  });
}
