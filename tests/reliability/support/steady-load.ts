import { Agent, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

/** One kind of request, sent again and again. */
export interface LoadKind {
  readonly path: string;
  readonly method: 'GET' | 'POST';
  /** Each sends one request after the other. */
  readonly clients: number;
}

/** What became of all requests. */
interface LoadReport {
  readonly responses: number;
  /** One sentence for each request that did not get 200 in full; the first few hundred. */
  readonly failures: readonly string[];
}

/** Clients that go on until they are stopped. */
export interface SteadyLoad {
  /** Responses so far. */
  responses(): number;
  /** No more requests; resolves when those under way are over. */
  stop(): Promise<LoadReport>;
}

const MOST_FAILURES = 300;
/** Between a response and the next request of a client, so that the load is steady and the machine not the limit. */
const PAUSE_MS = 25;

/** Sends requests with a key, each client on its own connection, which it keeps as long as the server lets it. */
export function startLoad(url: string, secret: string, kinds: readonly LoadKind[]): SteadyLoad {
  const failures: string[] = [];
  let responses = 0;
  let isStopped = false;
  const client = async (kind: LoadKind): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (!isStopped) {
      const outcome = await outcomeOf(url, secret, { kind, agent });
      responses += 1;
      if (outcome !== 'ok' && failures.length < MOST_FAILURES) {
        failures.push(`${kind.method} ${kind.path}: ${outcome}`);
      }
      await wait(PAUSE_MS);
    }
    agent.destroy();
  };
  const clients = kinds.flatMap((kind) => Array.from({ length: kind.clients }, () => client(kind)));
  return {
    responses: () => responses,
    stop: async () => {
      isStopped = true;
      await Promise.all(clients);
      return { responses, failures };
    },
  };
}

interface Sent {
  readonly kind: LoadKind;
  readonly agent: Agent;
}

/** `ok`, or what went wrong. Never rejects. */
function outcomeOf(url: string, secret: string, { kind: { path, method }, agent }: Sent): Promise<string> {
  return new Promise((resolve) => {
    const req = request(`${url}${path}`, {
      method,
      agent,
      headers: { authorization: `Bearer ${secret}`, ...(method === 'POST' && { 'content-length': 4 }) },
    });
    req.once('error', (error) => resolve(`no response: ${error.message}`));
    req.once('response', (res) => {
      let body = '';
      res.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk;
      });
      res.once('error', (error) => resolve(`cut off: ${error.message}`));
      res.once('end', () => resolve(res.statusCode === 200 ? 'ok' : `${res.statusCode} ${body}`));
    });
    req.end(method === 'POST' ? 'body' : undefined);
  });
}
