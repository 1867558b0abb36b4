import cluster from 'node:cluster';
import type { Logger } from '../platform/logger.ts';
import { EXIT_CODES } from './exit-codes.ts';

/** A terminal sends SIGHUP when it is closed. */
const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** What a process runs. `stop` resolves with whether all of it stopped cleanly. */
interface Stoppable {
  stop(): Promise<boolean>;
}

/** SIGTERM, SIGINT and SIGHUP end the start of a process, or stop the gateway that it runs. */
export class StopSignals {
  readonly #log: Logger;
  #isStopping = false;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Until `stopGateway` is called a signal ends the process: nothing was begun that would have to be finished. */
  endStart(): void {
    // Process 1 of a container ignores signals that it has no handler for. A worker is ended by its primary process.
    if (cluster.isPrimary) for (const signal of STOP_SIGNALS) process.on(signal, this.#endStart);
  }

  /** From now on the first signal stops the gateway and then ends the process; the next one ends it at once. */
  stopGateway(gateway: Stoppable): void {
    const stop = (reason: string): void => {
      if (!this.#isStopping) this.#stop(gateway, reason);
      // When a terminal is closed, its shell and the system may each send one.
      else if (reason !== 'SIGHUP') this.#giveUp(reason);
    };
    const { worker } = cluster;
    if (worker === undefined) {
      // Without any listener Node forgets a signal that came while the process was busy.
      for (const signal of STOP_SIGNALS) process.on(signal, stop).off(signal, this.#endStart);
      return;
    }
    // If SIGTERM goes to every process, the primary process sends workers a second one, which must not end them early.
    const stopOnce = (reason: string): void => {
      if (!this.#isStopping) stop(reason);
    };
    process.on('SIGTERM', stopOnce);
    // A terminal sends SIGINT and SIGHUP to workers as well, but the primary process stops them with SIGTERM.
    for (const signal of ['SIGINT', 'SIGHUP']) process.on(signal, () => {});
    worker.once('disconnect', () => {
      // Otherwise Node ends this process right after this event.
      worker.exitedAfterDisconnect = true;
      stopOnce('the primary process is gone');
    });
  }

  readonly #endStart = (reason: string): never => {
    this.#log.info({ reason }, 'stopped during the start');
    process.exit(EXIT_CODES.startEnded);
  };

  #stop(gateway: Stoppable, reason: string): void {
    this.#isStopping = true;
    this.#log.info({ reason }, 'stopping');
    gateway.stop().then((isClean) => {
      if (isClean) this.#log.info('stopped, usage written');
      else this.#log.error('stopped, but not cleanly: see above');
      process.exit(isClean ? 0 : EXIT_CODES.fault);
    });
  }

  #giveUp(reason: string): never {
    this.#log.warn({ reason }, 'second stop signal: stopping without waiting any longer');
    // Workers that are only left alone finish what they have begun.
    for (const each of Object.values(cluster.workers ?? {})) each?.process.kill('SIGKILL');
    process.exit(EXIT_CODES.fault);
  }
}
