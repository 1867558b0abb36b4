import { sharedWhileRunning } from '../platform/concurrency/shared-while-running.ts';
import { withinDeadline } from '../platform/within-deadline.ts';

/** A store or service that the replica needs. */
export interface Component {
  readonly name: string;
  /** Resolves when the component responds; rejects with the reason when it does not. */
  check(): Promise<void>;
}

/** The content of `/readyz`. */
export interface ReadinessReport {
  readonly ready: boolean;
  /** By component: `ok`, or the reason. Reasons contain no address and no credential. */
  readonly components: Readonly<Record<string, string>>;
}

/** The longest that the check of a component may take. Milliseconds. */
const CHECK_DEADLINE_MS = 2000;

/**
 * Whether the replica may get traffic: since the start, all components have passed one check together, and the replica is not shutting
 * down. A component that fails later is named, but the replica stays ready: all replicas share the stores, and each still does what it can
 * without them. A load balancer with no ready replica would make a partial outage a complete one. A report starts a check unless one is
 * running, so that a flood of probes does not load the stores. Once all components have passed, it shows the last result: a store that
 * hangs must not make a probe time out.
 */
export class Readiness {
  readonly #components: readonly Component[];
  readonly #last = new Map<string, ComponentState>();
  #draining = false;
  readonly #started = Promise.withResolvers<void>();
  /** All components have passed one check together. */
  #hasStarted = false;

  constructor(components: readonly Component[]) {
    this.#components = components;
    for (const { name } of components) this.#last.set(name, { text: 'not checked yet', level: 'info' });
  }

  /** Resolves when all components have passed one check together for the first time. */
  get started(): Promise<void> {
    return this.#started.promise;
  }

  /** The replica is about to stop: from now on it is never ready. */
  drain(): void {
    this.#draining = true;
  }

  /** Starts a check. Before the first success it waits for the result; afterwards it reports the last one. Never rejects. */
  async report(): Promise<ReadinessReport> {
    const checked = this.check();
    if (!this.#hasStarted) await checked;
    return this.last();
  }

  /** Checks every component. Resolves when all checks have ended or timed out. Concurrent calls share a check. */
  readonly check = sharedWhileRunning(() => this.#checkAll());

  /** The report of the last check, without a new one. */
  last(): ReadinessReport {
    const components: Record<string, string> = {};
    for (const [name, { text }] of this.#last) components[name] = text;
    if (this.#draining) components.replica = 'shutting down';
    return { ready: this.#hasStarted && !this.#draining, components };
  }

  /** The results of the last check, for the log. */
  states(): ReadonlyMap<string, ComponentState> {
    return this.#last;
  }

  async #checkAll(): Promise<void> {
    await Promise.all(
      this.#components.map(async (component) => {
        this.#last.set(component.name, await this.#checkOne(component));
      }),
    );
    if (this.#hasStarted || !this.#last.values().every(({ text }) => text === 'ok')) return;
    this.#hasStarted = true;
    this.#started.resolve();
  }

  async #checkOne(component: Component): Promise<ComponentState> {
    const late = () => new ReadinessFault('no response in time');
    try {
      await withinDeadline(component.check(), CHECK_DEADLINE_MS, late);
      return { text: 'ok', level: 'info' };
    } catch (error) {
      return error instanceof ReadinessFault
        ? { text: error.message, level: error.level }
        : { text: 'not available', level: 'error' };
    }
  }
}

/** The level of the log line for a reason: `info` passes by itself, `warn` needs an operator, `error` is a fault. */
type ReadinessLevel = 'info' | 'warn' | 'error';

/** `ok`, or the reason. */
export interface ComponentState {
  readonly text: string;
  readonly level: ReadinessLevel;
}

/** A reason for not being ready. Its message may be shown on the ops port. */
export class ReadinessFault extends Error {
  readonly level: ReadinessLevel;

  constructor(message: string, level: ReadinessLevel = 'error') {
    super(message);
    this.level = level;
  }
}
