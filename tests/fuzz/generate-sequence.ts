import { SeededRandom } from '../chaos/seeded-random.ts';
import { generateRequest } from './generate-request.ts';
import type { ClientAction, Intrusion, Sequence, Step } from './sequence.ts';

/** The sequence of a seed. One in eight is polite: it says whether what is ordinary still works. */
export function generateSequence(seed: number): Sequence {
  const random = new SeededRandom(seed);
  const isPolite = random.between(1, 8) === 1;
  const backendConnections = random.pick([1, 2, 2, 3, 4]);
  // Few, but enough for those who come afterwards.
  const backendWaiting = isPolite ? 64 : random.pick([2, 2, 4, 64]);
  const steps: Step[] = [];
  const clients = random.between(1, 4);
  const requests = random.between(2, 14);
  for (let client = 0; client < clients; client += 1)
    steps.push({ do: 'connect', client, key: client % 2 === 0 ? 0 : 1 });
  if (!isPolite && random.between(1, 3) === 1) steps.push(...crowd(random, backendConnections));
  for (let i = 0; i < requests; i += 1) {
    const client = random.between(0, clients - 1);
    const request = generateRequest(random, `r${i}`, isPolite);
    const isIntruded = !isPolite && random.between(1, 8) === 1;
    steps.push(isIntruded ? intrusion(random, { client, request }) : { do: 'request', client, request });
    // What is rejected to a client that takes nothing stays to be sent.
    if (request.fault.kind === 'bad chunk' && random.between(1, 2) === 1) steps.push({ do: 'clog', client });
    steps.push(...inBetween(random, client, isPolite));
  }
  return { seed, isPolite, backendConnections, backendWaiting, steps };
}

/** Requests that hold all backend connections for a while, so that those behind them wait. */
function crowd(random: SeededRandom, size: number): Step[] {
  return Array.from({ length: size }, (_, i): Step[] => {
    const client = CROWD + i;
    const request = generateRequest(random, `crowd${i}`, true);
    const response = { ...request.response, delay: random.between(20, 60) };
    return [
      { do: 'connect', client, key: i % 2 === 0 ? 0 : 1 },
      { do: 'request', client, request: { ...request, response } },
    ];
  }).flat();
}

function intrusion(random: SeededRandom, behind: IntrusionStep['behind']): IntrusionStep {
  return { do: 'intrude', connection: random.between(0, 2), bytes: random.pick(INTRUSIONS), behind };
}

function inBetween(random: SeededRandom, client: number, isPolite: boolean): Step[] {
  const steps: Step[] = [];
  const among = (many: number): boolean => random.between(1, many) === 1;
  if (among(3)) steps.push({ do: 'await', client });
  if (among(2)) steps.push({ do: 'turns', count: random.between(1, 8) });
  if (isPolite) return steps;
  if (among(8)) steps.push(intrusion(random, undefined));
  if (among(8)) steps.push({ do: random.pick(ACTIONS), client });
  if (among(12))
    steps.push({ do: 'drop', connection: random.between(0, 2), by: random.pick(['fin', 'reset']) });
  if (among(12)) steps.push({ do: 'stall', ms: random.between(1, 20) });
  // A client that lost its connection comes back.
  if (among(4)) steps.push({ do: 'connect', client, key: random.pick([0, 1]) });
  return steps;
}

type IntrusionStep = Extract<Step, { do: 'intrude' }>;

/** Number of the first client of a crowd. */
const CROWD = 100;
const INTRUSIONS: readonly Intrusion[] = ['response', 'response', 'half a response', 'interim', 'garbage'];
const ACTIONS: readonly ClientAction[] = ['pause', 'resume', 'clog', 'clog', 'unclog', 'end', 'reset'];
