import { TestGateway } from '../proxy/support/gateway.ts';
import { FuzzClient } from './fuzz-client.ts';
import { GatewaySockets } from './gateway-sockets.ts';
import { isForwarded, judgeBackend, judgeClient } from './judge.ts';
import { probeRequests } from './probe-requests.ts';
import { ScriptedBackend } from './scripted-backend.ts';
import { type RequestPlan, requestsOf, type Sequence, type Step } from './sequence.ts';
import { beforePoll, holdsWithin, turns } from './turns.ts';

/** What a sequence came to. */
export interface Played {
  /** Sentences, none when all promises held. */
  readonly findings: readonly string[];
  /** How many requests ended how: by status, `forwarded` or `rejected`; or without a response. */
  readonly endings: readonly string[];
  /** What listened in the end on each backend connection that was kept: the same after any sequence, or something is left behind. */
  readonly listeners: readonly string[];
}

/** How long anybody is waited for in a sequence in which not all behave, and in one in which all do. Milliseconds. */
const PATIENCE_MS = 100;
const POLITE_PATIENCE_MS = 30_000;
/** Longer than any of the gateway's own deadlines, on a machine that has other things to do. Milliseconds. */
const GIVE_UP_MS = 8000;
/** How often the requests afterwards are tried: beside much else, some deadline of each passed five times in a row. */
const PROBES = 50;
/** The gateway's deadline passed: before the backend had the request, too, which the gateway puts down to its stores. */
const LATE = /: (?:408 in|504 in|no response in|503 in.*"store_unavailable")/;

/** Plays a sequence against a gateway of its own and tells what did not hold. */
export async function playSequence(sequence: Sequence): Promise<Played> {
  const base = resources();
  const crashes: string[] = [];
  const onCrash = (error: unknown): void => {
    crashes.push(
      `would have ended the process: ${error instanceof Error ? (error.stack ?? error.message) : error}`,
    );
  };
  process.on('uncaughtException', onCrash);
  process.on('unhandledRejection', onCrash);
  try {
    const stage = await Stage.start(sequence);
    for (const step of sequence.steps) await stage.take(step);
    const late = await stage.settle();
    const findings = [...late, ...stage.judge(), ...(late.length === 0 ? await stage.probe() : [])];
    const listeners = stage.listeners();
    const endings = stage.endings();
    await stage.stop();
    const isClean = () => [...resources()].every(([name, count]) => count <= (base.get(name) ?? 0));
    if (!(await holdsWithin(GIVE_UP_MS, isClean)))
      findings.push(`left behind: ${[...resources()].join(' ')}`);
    return { findings: [...crashes, ...findings], endings, listeners };
  } finally {
    process.off('uncaughtException', onCrash);
    process.off('unhandledRejection', onCrash);
  }
}

/** All that takes part in one sequence. */
class Stage {
  readonly #sequence: Sequence;
  readonly #sockets: GatewaySockets;
  readonly #backend: ScriptedBackend;
  readonly #gateway: TestGateway;
  readonly #clients: FuzzClient[] = [];
  /** The present connection of each client. */
  readonly #byNumber = new Map<number, FuzzClient>();

  private constructor(
    sequence: Sequence,
    sockets: GatewaySockets,
    backend: ScriptedBackend,
    gateway: TestGateway,
  ) {
    this.#sequence = sequence;
    this.#sockets = sockets;
    this.#backend = backend;
    this.#gateway = gateway;
  }

  static async start(sequence: Sequence): Promise<Stage> {
    const { isPolite, backendConnections, backendWaiting } = sequence;
    const patience = isPolite ? POLITE_PATIENCE_MS : PATIENCE_MS;
    const sockets = new GatewaySockets();
    const probes = probeRequests(backendConnections);
    const backend = await ScriptedBackend.start(sockets, [...requestsOf(sequence), ...probes]);
    const gateway = await TestGateway.start(`http://127.0.0.1:${backend.port}`, {
      backendConnections,
      backendWaiting,
      backendTimeoutMs: patience,
      backendIdleMs: patience,
      upgradeIdleMs: patience,
      timeouts: { headMs: patience, idleMs: patience, keepAliveMs: POLITE_PATIENCE_MS },
    });
    return new Stage(sequence, sockets, backend, gateway);
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case 'connect':
        this.#byNumber.set(step.client, await this.#connect(step.key));
        return;
      case 'request':
        this.#byNumber.get(step.client)?.send(step.request);
        return;
      case 'await': {
        const client = this.#byNumber.get(step.client);
        await holdsWithin(PATIENCE_MS, () => client === undefined || client.isServed);
        return;
      }
      case 'turns':
        await turns(step.count);
        return;
      case 'stall':
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, step.ms);
        return;
      case 'intrude':
        await beforePoll();
        if (step.behind !== undefined) this.#byNumber.get(step.behind.client)?.send(step.behind.request);
        this.#backend.intrude(step.connection, step.bytes);
        return;
      case 'drop':
        await beforePoll();
        this.#backend.drop(step.connection, step.by);
        return;
      default:
        this.#byNumber.get(step.client)?.act(step.do);
    }
  }

  /** Waits for all that is under way; tells what never comes to its end. */
  async settle(): Promise<string[]> {
    const findings: string[] = [];
    const { proxy } = this.#gateway;
    // Not even a client that takes nothing may keep a request alive.
    if (!(await holdsWithin(GIVE_UP_MS, () => proxy.inFlight === 0)))
      findings.push(`${proxy.inFlight} requests never end while their clients take nothing`);
    for (const client of this.#clients) {
      client.act('unclog');
      client.act('resume');
    }
    await holdsWithin(GIVE_UP_MS, () => this.#clients.every(({ isServed }) => isServed));
    for (const client of this.#clients) {
      if (!client.isServed)
        findings.push(`a client waits for ever, after ${client.sent.map(({ token }) => token)}`);
      client.destroy();
    }
    if (!(await holdsWithin(GIVE_UP_MS, () => this.#isIdle()))) findings.push(`never idle: ${this.#load()}`);
    return findings;
  }

  judge(): string[] {
    const secrets = new Map(
      this.#clients.flatMap((client) =>
        client.sent.map(({ token }) => [token, this.#secret(client.key)] as const),
      ),
    );
    return [
      ...this.#clients.flatMap((client) => judgeClient(client, this.#sequence.isPolite)),
      ...judgeBackend(this.#backend, (token) => secrets.get(token)),
    ];
  }

  /** Whether as many requests as there are connections are still served, all at once. */
  async probe(): Promise<string[]> {
    for (let i = 1; ; i += 1) {
      const findings = await this.#probeOnce();
      // Until then the requests just made have places, which the next ones would lack.
      if (!(await holdsWithin(GIVE_UP_MS, () => this.#isIdle())))
        return [...findings, `afterwards never idle: ${this.#load()}`];
      // On a machine that stands still for a moment the gateway's short deadlines pass.
      if (i === PROBES || !findings.some((finding) => LATE.test(finding))) return findings;
    }
  }

  async #probeOnce(): Promise<string[]> {
    const findings: string[] = [];
    const probes = probeRequests(this.#sequence.backendConnections);
    const clients = await Promise.all(probes.map((_, i) => this.#connect(i % 2 === 0 ? 0 : 1)));
    for (const [i, probe] of probes.entries()) clients[i]?.send(probe);
    await holdsWithin(GIVE_UP_MS, () => clients.every(({ isServed }) => isServed));
    for (const client of clients) {
      findings.push(...judgeClient(client, true).map((fault) => `afterwards: ${fault}`));
      client.destroy();
    }
    return findings;
  }

  /** What listens on each backend connection that is kept for later. */
  listeners(): string[] {
    return this.#sockets.keptFor(this.#backend.port).map((socket) => {
      const counts = socket.eventNames().map((name) => `${String(name)} ${socket.listenerCount(name)}`);
      return counts.toSorted().join(', ');
    });
  }

  endings(): string[] {
    return this.#clients.flatMap(({ sent, reader }) =>
      sent.map((_: RequestPlan, i) => {
        const response = reader.complete[i];
        if (response === undefined)
          return i === reader.complete.length && reader.begun ? 'cut' : 'no response';
        return isForwarded(response) ? 'forwarded' : `${response.status}`;
      }),
    );
  }

  async stop(): Promise<void> {
    await this.#gateway.stop();
    await this.#backend.stop();
    this.#sockets.stop();
  }

  async #connect(key: 0 | 1): Promise<FuzzClient> {
    const client = await FuzzClient.connect(this.#gateway.port, this.#sockets, {
      key,
      secret: this.#secret(key),
    });
    this.#clients.push(client);
    return client;
  }

  #secret(key: 0 | 1): string {
    return key === 0 ? this.#gateway.secret : this.#gateway.otherSecret;
  }

  #isIdle(): boolean {
    const { busy, waiting, tunnels } = this.#gateway.proxy.backendLoad;
    return busy + waiting + tunnels + this.#gateway.proxy.inFlight === 0;
  }

  #load(): string {
    return JSON.stringify({ ...this.#gateway.proxy.backendLoad, inFlight: this.#gateway.proxy.inFlight });
  }
}

/** What keeps the process alive, by kind. */
function resources(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of process.getActiveResourcesInfo()) {
    // The pipes are this process's own output.
    if (name !== 'PipeWrap' && name !== 'Immediate') counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}
