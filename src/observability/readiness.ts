/** One thing that the replica needs to do its work. */
export interface Component {
  readonly name: string;
  /** Resolves when the component answers; rejects with the reason when it does not. */
  check(): Promise<void>;
}

/** What `/readyz` says. */
export interface ReadinessReport {
  readonly ready: boolean;
  /** Component by component: `ok`, or why not. Reasons hold no address and no credential. */
  readonly components: Readonly<Record<string, string>>;
}

/**
 * Whether the replica may get traffic: every component has answered at the same check since the start, and the replica is not shutting
 * down. A component that goes away later is named but does not take the replica out of service: all replicas share the stores, each
 * goes on with what it can do without them, and a load balancer with no replica left would turn an outage of a part into one of the
 * whole. Components are asked when the report is asked for, at most once at a time, so a flood of probes costs the stores nothing. Once
 * started, the report is that of the last check: a store that hangs must not make a probe give up on the replica.
 */
export class Readiness {
  readonly #components: readonly Component[];
  readonly #deadlineMs: number;
  readonly #last = new Map<string, string>();
  #running: Promise<void> | undefined;
  #draining = false;
  /** All components were fit at the same time once. */
  #hasStarted = false;

  constructor(components: readonly Component[], deadlineMs: number) {
    this.#components = components;
    this.#deadlineMs = deadlineMs;
    for (const { name } of components) this.#last.set(name, 'not checked yet');
  }

  /** From now on never ready again: the replica is about to stop. */
  drain(): void {
    this.#draining = true;
  }

  /** Asks every component, and reports: at the start when they have answered, later at once. Never rejects. */
  async report(): Promise<ReadinessReport> {
    const checked = this.check();
    if (!this.#hasStarted) await checked;
    return this.last();
  }

  /** Asks every component; resolves when all have answered or have had their time. While they are being asked, callers share it. */
  check(): Promise<void> {
    this.#running ??= this.#checkAll().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** The report of the last check, without asking anybody. */
  last(): ReadinessReport {
    const components: Record<string, string> = Object.fromEntries(this.#last);
    if (this.#draining) components.replica = 'shutting down';
    return { ready: this.#hasStarted && !this.#draining, components };
  }

  async #checkAll(): Promise<void> {
    await Promise.all(
      this.#components.map(async (component) => {
        this.#last.set(component.name, await this.#checkOne(component));
      }),
    );
    this.#hasStarted ||= this.#last.values().every((state) => state === 'ok');
  }

  async #checkOne(component: Component): Promise<string> {
    const deadline = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => deadline.reject(new ReadinessFault('no answer in time')),
      this.#deadlineMs,
    );
    try {
      await Promise.race([component.check(), deadline.promise]);
      return 'ok';
    } catch (error) {
      return error instanceof ReadinessFault ? error.message : 'not available';
    } finally {
      clearTimeout(timer);
    }
  }
}

/** A reason for not being ready whose message may be shown to whoever asks. */
export class ReadinessFault extends Error {}
