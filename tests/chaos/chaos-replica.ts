import { readdir } from 'node:fs/promises';
import { type GatewayProcess, startGateway } from '../support/gateway.ts';
import { Intervals } from './intervals.ts';

/** A replica that keeps its ports over restarts. */
export class ChaosReplica {
  readonly url: string;
  readonly opsUrl: string;
  /** From the moment it is told to end until it is ready again: a request in that time may find nobody. */
  readonly absences = new Intervals();
  /** When it was killed without notice. */
  readonly killedAt: number[] = [];
  /** When it was asked to end. */
  readonly terminatedAt: number[] = [];
  /** What went wrong with ends and starts. */
  readonly faults: string[] = [];
  readonly #environment: Readonly<Record<string, string>>;
  #process: GatewayProcess | undefined;

  constructor(environment: Readonly<Record<string, string>>, port: number, opsPort: number) {
    this.url = `http://127.0.0.1:${port}`;
    this.opsUrl = `http://127.0.0.1:${opsPort}`;
    this.#environment = { ...environment, PORT: String(port), OPS_PORT: String(opsPort) };
  }

  /** Resolves once it listens; whether it is ready depends on the stores. */
  async start(): Promise<void> {
    this.#process = await startGateway(this.#environment, { isReady: false });
    this.absences.end();
  }

  async kill(): Promise<void> {
    this.absences.begin();
    this.killedAt.push(performance.now());
    await this.#process?.kill();
  }

  /** Asks it to end, and notes when it does not end cleanly. */
  async terminate(): Promise<void> {
    this.absences.begin();
    this.terminatedAt.push(performance.now());
    const code = await this.#process?.stop();
    if (code !== 0) {
      this.faults.push(
        `a replica exited with code ${code} after SIGTERM:\n${this.#process?.output().slice(-2000)}`,
      );
    }
  }

  /** Open files and sockets of the process. NaN where the system does not tell. */
  async openFiles(): Promise<number> {
    return readdir(`/proc/${this.#process?.pid}/fd`).then(
      (names) => names.length,
      () => Number.NaN,
    );
  }
}
