import { RequestIds } from '../../src/http/request-id.ts';
import { systemRandom } from '../../src/platform/random.ts';

/** Names requests as the gateway does, where no credential is looked for in the names that clients give. */
export function testRequestIds(): RequestIds {
  return new RequestIds(systemRandom, () => false);
}
