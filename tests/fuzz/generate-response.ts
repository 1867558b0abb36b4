import type { SeededRandom } from '../chaos/seeded-random.ts';
import type { RequestPlan, ResponseFault, ResponsePlan, Segmentation } from './sequence.ts';

/** What the backend does with a request. */
export function generateResponse(
  random: SeededRandom,
  request: Omit<RequestPlan, 'response'>,
  isPolite: boolean,
): ResponsePlan {
  const among = (many: number): boolean => random.between(1, many) === 1;
  const switches = request.isUpgrade ? !among(4) : !isPolite && among(40);
  return {
    readsBody: isPolite || request.framing === 'none' || EXPECTS_BODY.has(request.method) || among(2),
    trigger: !isPolite && among(5) ? 'head' : 'whole request',
    delay: random.pick([0, 0, 1, 2, 5, 12]),
    interim: among(6) ? [random.pick([100, 102, 103])] : [],
    status: switches ? 101 : random.pick([200, 200, 200, 200, 201, 204, 304, 404, 500]),
    framing: random.pick(isPolite ? ['length', 'chunked'] : ['length', 'length', 'chunked', 'close']),
    bodyBytes: random.pick([0, 1, 30, 30, 2000, 70_000, ...(among(8) ? [4_000_000] : [])]),
    bodyNobodyReads: isPolite
      ? random.pick(['none', 'announced'])
      : random.pick(['none', 'announced', 'announced', 'same segment', 'later', 'later']),
    surplus: isPolite ? 'none' : random.pick(['none', 'none', 'none', 'none', 'same segment', 'later']),
    fault: isPolite ? { kind: 'none' } : faultOf(random),
    afterwards: isPolite
      ? random.pick(['keep', 'keep', 'announced close'])
      : random.pick(['keep', 'keep', 'keep', 'keep', 'announced close', 'fin', 'reset']),
    segments: generateSegmentation(random),
  };
}

export function generateSegmentation(random: SeededRandom): Segmentation {
  const count = random.pick([0, 0, 0, 1, 1, 2, 5]);
  return {
    cuts: Array.from({ length: count }, () => random.fraction()),
    turns: random.pick([0, 1, 1, 2, 4]),
  };
}

/** Any server reads the bodies of these. */
const EXPECTS_BODY: ReadonlySet<string> = new Set(['POST', 'PUT']);

function faultOf(random: SeededRandom): ResponseFault {
  const kind = random.between(1, 40);
  const at = random.fraction();
  if (kind <= 2)
    return { kind: 'malformed', part: random.pick(['status line', 'header', 'length', 'chunk']), at };
  if (kind <= 5) return { kind: 'cut', at, by: random.pick(['fin', 'reset']) };
  // Not a byte comes: what may be sent again is now.
  if (kind <= 8) return { kind: 'cut', at: 0, by: random.pick(['fin', 'reset']) };
  return kind === 9 ? { kind: 'cut', at, by: 'silence' } : { kind: 'none' };
}
