/** One thing that the replica needs to do its work. */
export interface Component {
  readonly name: string;
  /** Resolves when the component responds; rejects with the reason when it does not. */
  check(): Promise<void>;
}

/** What `/readyz` shows. */
export interface ReadinessReport {
  readonly ready: boolean;
  /** Component by component: `ok`, or why not. Reasons hold no address and no credential. */
  readonly components: Readonly<Record<string, string>>;
}

/** Longest that a component may take for a check. Milliseconds. */
const CHECK_DEADLINE_MS = 2000;

/**
 * Whether the replica may get traffic: all components have passed the same check once since the start, and the replica is not shutting
 * down. A component that fails later is named but does not take the replica out of service: all replicas share the stores, each
 * still does what it can without them, and a load balancer with no replica left would make a partial outage a complete one.
 * A report starts a check unless one is running, so a flood of probes costs the stores nothing. Once all components have passed, the
 * report shows the last check: a store that hangs must not make a probe time out.
 */
export class Readiness {
  readonly #components: readonly Component[];
  readonly #last = new Map<string, ComponentState>();
  #running: Promise<void> | undefined;
  #draining = false;
  /** All components have passed the same check once. */
  #hasStarted = false;

  constructor(components: readonly Component[]) {
    this.#components = components;
    for (const { name } of components) this.#last.set(name, { text: 'not checked yet', level: 'info' });
  }

  /** From now on never ready again: the replica is about to stop. */
  drain(): void {
    this.#draining = true;
  }

  /** Starts a check and reports: before the first success with its result, afterwards at once. Never rejects. */
  async report(): Promise<ReadinessReport> {
    const checked = this.check();
    if (!this.#hasStarted) await checked;
    return this.last();
  }

  /** Checks every component; resolves when all checks have ended or timed out. Callers share a running check. */
  check(): Promise<void> {
    this.#running ??= this.#checkAll().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** The report of the last check, without a new one. */
  last(): ReadinessReport {
    const components: Record<string, string> = {};
    for (const [name, { text }] of this.#last) components[name] = text;
    if (this.#draining) components.replica = 'shutting down';
    return { ready: this.#hasStarted && !this.#draining, components };
  }

  /** What the last check found, for the log. */
  states(): ReadonlyMap<string, ComponentState> {
    return this.#last;
  }

  async #checkAll(): Promise<void> {
    await Promise.all(
      this.#components.map(async (component) => {
        this.#last.set(component.name, await this.#checkOne(component));
      }),
    );
    this.#hasStarted ||= this.#last.values().every(({ text }) => text === 'ok');
  }

  async #checkOne(component: Component): Promise<ComponentState> {
    const deadline = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => deadline.reject(new ReadinessFault('no response in time')),
      CHECK_DEADLINE_MS,
    );
    try {
      await Promise.race([component.check(), deadline.promise]);
      return { text: 'ok', level: 'info' };
    } catch (error) {
      return error instanceof ReadinessFault
        ? { text: error.message, level: error.level }
        : { text: 'not available', level: 'error' };
    } finally {
      clearTimeout(timer);
    }
  }
}

/** How a reason for not being ready is logged: `info` passes by itself, `warn` waits for an operator, `error` is a fault. */
type ReadinessLevel = 'info' | 'warn' | 'error';

/** `ok`, or why not. */
export interface ComponentState {
  readonly text: string;
  readonly level: ReadinessLevel;
}

/** A reason for not being ready whose message may be shown on the ops port. */
export class ReadinessFault extends Error {
  readonly level: ReadinessLevel;

  constructor(message: string, level: ReadinessLevel = 'error') {
    super(message);
    this.level = level;
  }
}
