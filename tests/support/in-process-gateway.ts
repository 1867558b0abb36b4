import { type ClientLimits, limitClients } from '../../src/app/client-limits.ts';
import type { ListenerParts, Listeners } from '../../src/app/open-listeners.ts';
import type { ReplicaContext } from '../../src/app/replica-context.ts';
import { type Counting, countInProcess } from '../../src/app/stores/counting.ts';
import type { RecordChangePaths } from '../../src/app/wiring/wire-changes.ts';
import type { ManagementParts } from '../../src/app/wiring/wire-management.ts';
import type { ProxyParts, WiredProxy } from '../../src/app/wiring/wire-proxy.ts';
import { FailedCredentials } from '../../src/http/credentials/failed-credentials.ts';
import type { RequestIds } from '../../src/http/request-id.ts';
import { SecretRedactor } from '../../src/keys/secrets/secret-redactor.ts';
import type { RateLimiter } from '../../src/limiter/rate-limiter.ts';
import type { WindowCounters } from '../../src/limiter/window-counters.ts';
import { type Clock, systemClock } from '../../src/platform/clock.ts';
import type { Logger } from '../../src/platform/logger.ts';
import { ShutdownOrder } from '../../src/platform/process/shutdown-order.ts';
import { systemRandom } from '../../src/platform/random.ts';
import type { ProxyOptions } from '../../src/proxy/proxy-options.ts';
import { SecretVault } from '../../src/secrets/secret-vault.ts';
import { readSettings, type Settings } from '../../src/settings/settings.ts';
import { ENCRYPTION_KEY, ROOT_TOKEN, type RunningGateway } from './gateway.ts';
import { testRequestIds } from './request-ids.ts';
import { LONGEST_WAIT_MS, until } from './until.ts';

/** Options of the proxied side for which there is no setting. */
type ProxyTuning = Pick<ProxyOptions, 'backendWaiting' | 'upgradeIdleMs' | 'maxUpgrades' | 'rateWindowMs'>;

/** The settings that a test may change; the others are the defaults. */
export interface TestSettings extends Partial<Settings>, Partial<ProxyTuning> {}

/** What a gateway is built from, besides its stores. */
export interface InProcessOptions {
  readonly settings?: TestSettings;
  readonly clock?: Clock;
  readonly log: Logger;
  readonly requestIds?: RequestIds;
  /** Replaces the gateway's own, for example by one in which an address has used up its budget. */
  readonly failedCredentials?: FailedCredentials;
  /** Replace the limiter and the counters in the process. */
  readonly limiter?: RateLimiter;
  readonly counters?: WindowCounters;
  /** Whether published changes are lost at the moment; by default none is. */
  readonly isFeedSilent?: () => boolean;
}

const SETTINGS = readSettings({
  BACKEND_URL: 'http://127.0.0.1:1',
  ...{ ROOT_TOKEN, ENCRYPTION_KEY },
  ...{ HOST: '127.0.0.1', PORT: '0' },
  SELF_SERVICE_PATH: '',
  SHUTDOWN_DRAIN_MS: '0',
});

/**
 * A gateway in this process, with the stores that a test gives. The composition root builds the proxied side or management when a test
 * calls for it, so that a test of the one does not load the other. Limits are counted in the process.
 */
export class InProcessGateway {
  readonly counting: Counting;
  readonly #context: ReplicaContext;
  readonly #rootTokens: readonly string[];
  readonly #vault: SecretVault;
  #connectionLimits: ClientLimits | undefined;
  #startJobs: (() => void) | undefined;
  readonly #maxUpgrades: number | undefined;
  readonly #shared: Pick<ManagementParts, 'requestIds' | 'failedCredentials'>;

  constructor(options: InProcessOptions) {
    const { clock = systemClock, log, requestIds = testRequestIds() } = options;
    const settings = { ...SETTINGS, ...options.settings };
    const { trustedProxies } = settings;
    const { failedCredentials = new FailedCredentials({ clock, trustedProxies }) } = options;
    const platform = { clock, random: systemRandom, log };
    const counting = countInProcess(platform);
    this.#context = { settings, platform, shutdown: new ShutdownOrder(log) };
    this.#rootTokens = settings.rootTokens;
    this.#maxUpgrades = settings.maxUpgrades;
    this.#vault = new SecretVault(settings.encryptionKeys, systemRandom);
    this.counting = {
      ...counting,
      limiter: options.limiter ?? counting.limiter,
      counters: options.counters ?? counting.counters,
      changes: {
        onChange: (changed) =>
          counting.changes.onChange((keyId) => {
            if (!options.isFeedSilent?.()) changed(keyId);
          }),
        onReset: (reset) => counting.changes.onReset(reset),
      },
    };
    this.#shared = { requestIds, failedCredentials };
  }

  /** Builds the proxied side. */
  async proxied(parts: Pick<ProxyParts, 'records' | 'keys' | 'usage' | 'observers'>): Promise<WiredProxy> {
    const { wireProxy } = await import('../../src/app/wiring/wire-proxy.ts');
    return wireProxy(this.#context, {
      ...{ ...this.#shared, ...parts, redactor: this.#redactor() },
      counting: this.counting,
      changes: await this.#changes(),
      maxUpgrades: this.#maxUpgrades ?? this.limits.upgrades,
    });
  }

  #redactor(): SecretRedactor {
    const { keyPrefix } = this.#context.settings;
    return new SecretRedactor({ rootTokens: this.#rootTokens, keyPrefix });
  }

  /** Builds the management interface. */
  async management(
    parts: Pick<ManagementParts, 'records' | 'usage' | 'system' | 'consoleDirectory'>,
  ): Promise<ListenerParts['management']> {
    const { wireConfigurations } = await import('../../src/app/wiring/wire-configurations.ts');
    const { wireEvents } = await import('../../src/app/wiring/wire-events.ts');
    const { wireJobs } = await import('../../src/app/wiring/wire-jobs.ts');
    const { wireManagement } = await import('../../src/app/wiring/wire-management.ts');
    const { wireSignIn } = await import('../../src/app/wiring/wire-sign-in.ts');
    const stores = { records: parts.records, counting: this.counting };
    const changes = await this.#changes();
    const secrets = { vault: this.#vault, rootTokens: this.#rootTokens };
    const events = wireEvents(this.#context, {
      ...{ ...stores, ...secrets, usage: parts.usage, redactor: this.#redactor() },
    });
    const webhooks = events.webhooksIn(parts.records);
    const { jobsIn, startJobs } = wireJobs(this.#context, { ...stores, ...secrets, ...changes });
    this.#startJobs = startJobs;
    const { management } = wireManagement(this.#context, {
      ...this.#shared,
      ...parts,
      ...stores,
      ...secrets,
      changes,
      jobsIn,
      // Most providers of tests are in this process, and the machine may stand still.
      people: wireSignIn(this.#context, { ...stores, ...secrets, timeoutMs: LONGEST_WAIT_MS }),
      ...events,
      configurationsIn: wireConfigurations(this.#context, stores, { ...secrets, ...changes, webhooks }),
      observers: { managed: () => {} },
    });
    return management;
  }

  /** From now on the jobs of the management interface are worked on. */
  startJobs(): void {
    this.#startJobs?.();
  }

  async #changes(): Promise<RecordChangePaths> {
    const { changePathsInProcess } = await import('../../src/app/wiring/wire-changes.ts');
    return changePathsInProcess(this.#context, this.counting);
  }

  /** Opens the ports. */
  async listen(
    parts: Pick<
      ListenerParts,
      'proxy' | 'management' | 'observers' | 'timeouts' | 'uploadRate' | 'downloadRate'
    >,
  ): Promise<Listeners> {
    const { openListeners } = await import('../../src/app/open-listeners.ts');
    return openListeners(this.#context, {
      ...{ ...this.#shared, ...parts, selfService: null },
      connectionLimits: this.limits,
    });
  }

  get limits(): ClientLimits {
    this.#connectionLimits ??= limitClients(this.#context);
    return this.#connectionLimits;
  }

  /** Stops what was built, in the order of a shutdown. Rejects if a part did not stop cleanly. */
  async stop(): Promise<void> {
    if (!(await this.#context.shutdown.stop()))
      throw new Error('the gateway did not stop cleanly: see its log');
  }
}

/**
 * Starts a whole replica in this process. That takes a tenth of the CPU time of `startGateway`, once a test file has loaded the gateway.
 * It writes no access log, which would go to standard output. Tests of signals, exit codes, workers and crashes need `startGateway`.
 */
export async function startInProcess(
  environment: Readonly<Record<string, string>>,
  { isReady = true }: { readonly isReady?: boolean } = {},
): Promise<RunningGateway> {
  const [{ startSingleProcess }, { pino }] = await Promise.all([
    import('../../src/app/single-process.ts'),
    import('pino'),
  ]);
  const ports = { HOST: '127.0.0.1', PORT: '0', OPS_PORT: '0' };
  const settings = readSettings({ ...ports, ACCESS_LOG: 'off', ...environment });
  let written = '';
  const write = (line: string): void => {
    written += line;
  };
  const log = pino({ level: settings.logLevel }, { write });
  const gateway = await startSingleProcess(settings, { clock: systemClock, random: systemRandom, log });
  let stopped: Promise<void> | undefined;
  const replica: RunningGateway = {
    url: `http://127.0.0.1:${gateway.port}`,
    opsUrl: `http://127.0.0.1:${gateway.opsPort}`,
    authorizeUrl: `http://127.0.0.1:${gateway.authorizePort}`,
    output: () => written,
    stop: () => {
      stopped ??= gateway.stop().then((isClean) => {
        if (!isClean) throw new Error(`the gateway did not stop cleanly, and wrote:\n${written}`);
      });
      return stopped;
    },
  };
  if (isReady) {
    const isUp = async () => (await fetch(`${replica.opsUrl}/readyz`)).ok;
    await until(isUp).catch(async (cause: unknown) => {
      await gateway.stop();
      throw new Error(`the gateway did not get ready, and wrote:\n${written}`, { cause });
    });
  }
  return replica;
}
