import type { SeededRandom } from '../chaos/seeded-random.ts';
import { generateResponse, generateSegmentation } from './generate-response.ts';
import type { RequestFault, RequestPlan } from './sequence.ts';

/** A request, and the backend's response to it. */
export function generateRequest(random: SeededRandom, token: string, isPolite: boolean): RequestPlan {
  const isUpgrade = !isPolite && random.between(1, 12) === 1;
  const method = isUpgrade ? 'GET' : random.pick(METHODS);
  // What follows a request of HTTP/1.0, or one that closes the connection, may get no response: polite clients send neither.
  const version = isPolite || isUpgrade || random.between(1, 15) > 1 ? '1.1' : '1.0';
  const framing = isUpgrade ? 'none' : framingOf(random, method, version);
  const hasBody = framing !== 'none';
  const request = {
    token,
    method,
    version,
    framing,
    bodyBytes: hasBody ? random.pick([0, 1, 40, 40, 3000, 100_000]) : 0,
    expectsContinue: hasBody && version === '1.1' && random.between(1, 3) === 1,
    isUpgrade,
    isLast: !isPolite && random.between(1, 12) === 1,
    fault: isPolite ? NO_FAULT : faultOf(random, framing),
    segments: generateSegmentation(random),
  } as const;
  return { ...request, response: generateResponse(random, request, isPolite) };
}

function framingOf(
  random: SeededRandom,
  method: RequestPlan['method'],
  version: RequestPlan['version'],
): RequestPlan['framing'] {
  const mayHaveBody = method === 'POST' || method === 'PUT' || random.between(1, 6) === 1;
  if (!mayHaveBody) return 'none';
  return version === '1.0' ? 'length' : random.pick(['length', 'chunked']);
}

function faultOf(random: SeededRandom, framing: RequestPlan['framing']): RequestFault {
  if (framing === 'chunked' && random.between(1, 5) === 1)
    return { kind: 'bad chunk', at: random.fraction() };
  const kind = random.between(1, 24);
  if (kind > 2) return NO_FAULT;
  return { kind: 'cut', at: random.fraction(), by: kind === 2 ? 'silence' : random.pick(['fin', 'reset']) };
}

const NO_FAULT: RequestFault = { kind: 'none' };
const METHODS = ['GET', 'GET', 'GET', 'HEAD', 'HEAD', 'OPTIONS', 'POST', 'POST', 'PUT', 'DELETE'] as const;
