import { once } from 'node:events';
import { rmSync, symlinkSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { get, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { readyz } from '../reliability/support/probe.ts';
import { Admin } from '../support/admin.ts';
import { burst, statusOf } from '../support/burst.ts';
import { requireProgram } from '../support/debian-package.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { freePort } from '../support/free-port.ts';
import { type GatewayProcess, isAlive, ROOT_TOKEN, runGateway, startGateway } from '../support/gateway.ts';
import { portOf, TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';

/** Its replica only manages; what is tested is started beside it. */
let fleet: Fleet;
let gateway: GatewayProcess;
/** Requests for `/held` wait here. */
const held = new Set<ServerResponse>();

beforeAll(async () => {
  fleet = await startInProcessFleet(1, {}, (req, res) => {
    if (req.url === '/held') held.add(res);
    else res.end('ok');
  });
});
afterAll(() => fleet?.stop());

async function startWorkers(
  settings: Readonly<Record<string, string>> = {},
  options: Parameters<typeof startGateway>[1] = {},
): Promise<void> {
  const port = String(await freePort());
  gateway = await startGateway({ ...fleet.environment, WORKERS: '2', PORT: port, ...settings }, options);
}

/** For NODE_OPTIONS: what each process runs before the gateway. */
function preload(code: string): string {
  return `--import data:text/javascript,${encodeURIComponent(code)}`;
}

/** The processes that the primary process has started so far, whether they listen already or not. */
function forkedPids(): readonly number[] {
  return [...gateway.output().matchAll(/"worker":(\d+),"msg":"a worker starts"/g)].map(([, pid]) =>
    Number(pid),
  );
}

async function metric(pattern: RegExp): Promise<number> {
  const text = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
  return Number(pattern.exec(text)?.[1]);
}

/** A scrape has the last report of a worker that does not report in time: once this one has all of it, later ones have. */
async function untilShown(pattern: RegExp, value: number): Promise<void> {
  await until(async () => (await metric(pattern)) === value);
}

/** Sends requests that wait at the backend, on a connection each: so many that the system gives each worker some. */
async function holdRequests() {
  held.clear();
  const { id, secret } = await new Admin(gateway.url).makeKey('draining');
  const count = 40;
  const statuses = Promise.all(
    Array.from({ length: count }, () => statusOf(`${gateway.url}/held`, secret).catch(() => 'cut')),
  );
  await until(() => held.size === count);
  return {
    /** Lets the backend respond. Resolves with the different statuses. */
    finish: async () => {
      for (const res of held) res.end('late');
      return [...new Set(await statuses)];
    },
    areCounted: async () => (await fleet.admin.detail(id)).usage.successfulRequests === count,
  };
}

function isStopping(pid: number): boolean {
  return new RegExp(`"pid":${pid},[^\\n]*"msg":"stopping"`).test(gateway.output());
}

/** The counter is not there before the first one. */
const allowedSoFar = async () => (await metric(ALLOWED)) || 0;

/** Waits until it has logged something from now on that it may have logged before. */
async function untilLogged(message: string, change: () => void): Promise<void> {
  const before = gateway.output().length;
  change();
  await until(() => gateway.output().slice(before).includes(message));
}

const ALLOWED = /^tollgate_requests_total\{[^}]*outcome="forwarded"[^}]*\} (\d+)$/m;
const OBSERVED = /^tollgate_request_duration_seconds_count\{outcome="forwarded"\} (\d+)$/m;
const CPU_SECONDS = /^process_cpu_seconds_total ([\d.]+)$/m;
const LONGEST_DELAY = /^tollgate_event_loop_delay_seconds\{statistic="max"\} ([\d.]+)$/m;

/** Each worker waits before it runs the gateway, and writes a line when it says that it listens: whether a signal would end it. */
const NOTE_SIGNALS = `
  import cluster from 'node:cluster';
  const { send } = process;
  if (cluster.isWorker) {
    await new Promise((done) => setTimeout(done, 50));
    process.send = (message, ...rest) => {
      if (message?.type === 'listening')
        process.stdout.write(process.listenerCount('SIGTERM') > 0 ? 'handles signals\\n' : 'would be ended\\n');
      return send.call(process, message, ...rest);
    };
  }`;

describe('two workers', () => {
  beforeAll(() => startWorkers({ NODE_OPTIONS: preload(NOTE_SIGNALS), METRICS_PER_KEY: 'top:1' }));
  afterAll(() => gateway?.stop());

  it('handle signals before they say that they listen', async () => {
    await until(() => (gateway.output().match(/^handles signals$/gm) ?? []).length === 2);
    expect(gateway.output()).not.toContain('would be ended');
  });

  it('share one port, count exactly together, and show their metrics as one', async () => {
    const admin = new Admin(gateway.url);
    await admin.makePlan('workers', 60, 'hour');
    const { id, secret } = await admin.makeKey('workers', 'workers');
    const before = await allowedSoFar();
    expect(await burst([gateway.url], { secret, requests: 100, inFlight: 40 })).toEqual({ 200: 60, 429: 40 });
    await untilShown(ALLOWED, before + 60);
    await untilShown(/^tollgate_ready (\d+)$/m, 2);
    await until(async () => (await admin.detail(id)).usage.totalRequests === 100);
  });

  it('show the busiest key of both, although another one is the busiest of one of them', async () => {
    const admin = new Admin(gateway.url);
    await admin.makePlan('busiest', 1000, 'hour');
    const inOne = await admin.makeKey('in one', 'busiest');
    const inBoth = await admin.makeKey('in both', 'busiest');
    await burst([gateway.url], { secret: inOne.secret, requests: 250, inFlight: 1 });
    await burst([gateway.url], { secret: inBoth.secret, requests: 400, inFlight: 40 });
    const shown = async () =>
      (await (await fetch(`${gateway.opsUrl}/metrics`)).text()).match(/^tollgate_key_requests_total.*$/gm);
    const whole = `tollgate_key_requests_total{key_id="${inBoth.id}",outcome="forwarded"} 400`;
    await until(async () => String(await shown()) === whole);
  });

  it.each(['PORT', 'ADMIN_PORT'])(
    'keep their port from the workers of another gateway, as its %s',
    async (setting) => {
      const { port } = new URL(gateway.url);
      const others = { PORT: String(await freePort()), ADMIN_PORT: String(await freePort()) };
      const { code, output } = await runGateway({
        ...fleet.environment,
        WORKERS: '2',
        ...others,
        [setting]: port,
      });
      expect(code).toBe(1);
      expect(output.split('\n')).toContain(
        `Port ${port} of 127.0.0.1 is in use by another process: stop it, or set ${setting} to another port.`,
      );
      expect(output).not.toContain('a worker starts');
    },
  );

  it('show the longest delay of an event loop since the last scrape that showed it', async () => {
    const [stalled = Number.NaN] = gateway.workerPids();
    // Again if the worker's report for the scrape came too late to be shown.
    await until(async () => {
      process.kill(stalled, 'SIGSTOP');
      try {
        // Waits for a second, and shows the other worker.
        await metric(LONGEST_DELAY);
      } finally {
        process.kill(stalled, 'SIGCONT');
      }
      // Each probe has a report of every worker.
      await until(async () => (await readyz(gateway.opsUrl)).components.workers === 'ok');
      return (await metric(LONGEST_DELAY)) > 0.9;
    });
    await until(async () => (await metric(LONGEST_DELAY)) < 0.9);
  });

  it('are two again after one died', async () => {
    const [first = Number.NaN, second] = gateway.workerPids();
    await untilLogged('a worker took the place of one that died', () => process.kill(first, 'SIGKILL'));
    await untilShown(/^tollgate_ready (\d+)$/m, 2);
    expect(gateway.workerPids()).toEqual([second, expect.any(Number)]);
  });

  it('do not forget what one had counted that died, nor count it twice', async () => {
    const admin = new Admin(gateway.url);
    await admin.makePlan('counting', 1000, 'hour');
    const { secret } = await admin.makeKey('counting', 'counting');
    const before = await allowedSoFar();
    // So many connections that the system gives each worker some.
    await burst([gateway.url], { secret, requests: 100, inFlight: 40 });
    await untilShown(ALLOWED, before + 100);
    const cpuSeconds = await metric(CPU_SECONDS);
    const [first = Number.NaN] = gateway.workerPids();
    await untilLogged('a worker died', () => process.kill(first, 'SIGKILL'));
    const died = gateway.output().match(/^.*a worker died.*$/gm) ?? [];
    expect(died.map((line) => JSON.parse(line))).toContainEqual(
      expect.objectContaining({ pid: gateway.pid, worker: first }),
    );
    expect(await metric(ALLOWED)).toBe(before + 100);
    expect(await metric(OBSERVED)).toBe(before + 100);
    expect(await metric(CPU_SECONDS)).toBeGreaterThanOrEqual(cpuSeconds);
    await untilShown(/^tollgate_ready (\d+)$/m, 2);
    await burst([gateway.url], { secret, requests: 100, inFlight: 40 });
    await untilShown(ALLOWED, before + 200);
    expect(await metric(OBSERVED)).toBe(before + 200);
  });

  it('are ready while one of them is stuck, and keep what that one had counted', async () => {
    const admin = new Admin(gateway.url);
    await admin.makePlan('stuck', 1000, 'hour');
    const { secret } = await admin.makeKey('stuck', 'stuck');
    const before = await allowedSoFar();
    await burst([gateway.url], { secret, requests: 100, inFlight: 40 });
    await untilShown(ALLOWED, before + 100);
    const stuck = gateway.workerPids()[0] ?? Number.NaN;
    process.kill(stuck, 'SIGSTOP');
    try {
      await until(async () => {
        // As long as the probe in `k8s/` waits.
        const signal = AbortSignal.timeout(2000);
        const probe = await fetch(`${gateway.opsUrl}/readyz`, { signal }).catch(() => undefined);
        return probe?.ok === true && (await probe.text()).includes('1 of 2 ready');
      });
      expect(await metric(ALLOWED)).toBe(before + 100);
      expect(await metric(OBSERVED)).toBe(before + 100);
      await untilShown(/^tollgate_ready (\d+)$/m, 1);
    } finally {
      process.kill(stuck, 'SIGCONT');
    }
    await untilShown(/^tollgate_ready (\d+)$/m, 2);
    expect(await metric(ALLOWED)).toBe(before + 100);
  });

  // The last one of them.
  it('finish what both began at SIGTERM, end with code 0, and leave no process behind', async () => {
    const pids = gateway.workerPids();
    const requests = await holdRequests();
    const exited = gateway.stop();
    await until(async () => (await fetch(`${gateway.opsUrl}/readyz`)).status === 503);
    expect(gateway.workerPids()).toEqual(pids);
    expect(await requests.finish()).toEqual([200]);
    expect(await exited).toBe(0);
    expect(pids.filter(isAlive)).toEqual([]);
    expect(await requests.areCounted()).toBe(true);
  });
});

describe('a worker that takes the place of another one', () => {
  const newToken = ROOT_TOKEN.toUpperCase();
  const planOf = (limit: number) => ({ rateLimitId: 'configured', limit, period: 'hour' });
  let directory: string;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'tollgate-files-'));
    const [tokenFile, configFile, logoFile] = [
      join(directory, 'token'),
      join(directory, 'gateway.json'),
      join(directory, 'logo.svg'),
    ];
    await writeFile(tokenFile, ROOT_TOKEN);
    await writeFile(configFile, JSON.stringify({ plans: [planOf(1)] }));
    await writeFile(logoFile, '<svg xmlns="http://www.w3.org/2000/svg"/>');
    const owner = 'workers';
    await startWorkers({
      ...{ ROOT_TOKEN: '', ROOT_TOKEN_FILE: tokenFile, CONFIG_FILE: configFile, CONFIG_OWNER: owner },
      ...{ PORTAL: 'on', PORTAL_LOGO_FILE: logoFile },
    });
    await untilShown(/^tollgate_ready (\d+)$/m, 2);
    await writeFile(tokenFile, newToken);
    await writeFile(configFile, 'no configuration');
    await writeFile(logoFile, 'no logo');
    const newer = { config: { plans: [planOf(2)] }, owner };
    const applied = await new Admin(gateway.url).call('POST', '/tollgate/config/apply', newer);
    expect(applied).toMatchObject({ status: 200 });
    const [first = Number.NaN] = gateway.workerPids();
    await untilLogged('a worker took the place of one that died', () => process.kill(first, 'SIGKILL'));
    await untilShown(/^tollgate_ready (\d+)$/m, 2);
  });
  afterAll(async () => {
    expect(await gateway?.stop()).toBe(0);
    await rm(directory, { recursive: true });
  });

  /** The different statuses of a management request, on a connection each: so many that the system gives each worker some. */
  async function statusesWith(token: string): Promise<readonly unknown[]> {
    const headers = { authorization: `Bearer ${token}` };
    const statuses = Array.from({ length: 40 }, async () => {
      const [response] = await once(get(`${gateway.url}/rate-limit`, { agent: false, headers }), 'response');
      response.resume();
      return response.statusCode;
    });
    return [...new Set(await Promise.all(statuses))];
  }

  it('has the contents of files with which the gateway was started', async () => {
    expect(await statusesWith(ROOT_TOKEN)).toEqual([200]);
    expect(await statusesWith(newToken)).toEqual([401]);
  });

  it('leaves a newer configuration of the owner of CONFIG_FILE in force', async () => {
    const { body } = await new Admin(gateway.url).call('GET', '/rate-limit/configured');
    expect(body).toMatchObject({ limit: 2 });
    expect(gateway.output().match(/CONFIG_FILE was applied/g)).toHaveLength(1);
  });
});

describe('two workers that can not start', () => {
  it('name a store that hangs', async () => {
    const relay = await TcpRelay.start(portOf(fleet.databaseUrl));
    relay.silence();
    const unready = await startGateway(
      {
        ...fleet.environment,
        DATABASE_URL: relay.urlOf(fleet.databaseUrl),
        WORKERS: '2',
        PORT: String(await freePort()),
      },
      { isReady: false },
    );
    try {
      await until(async () => (await readyz(unready.opsUrl)).components.postgres === 'no response in time');
      // This one begins a new check of the store, which takes longer than a worker may.
      expect(await readyz(unready.opsUrl)).toMatchObject({
        status: 503,
        components: { postgres: 'no response in time' },
      });
    } finally {
      await unready.stop();
      await relay.stop();
    }
  });

  it('are those of one gateway where two start on a port at the same instant', async () => {
    const shared = { ...fleet.environment, WORKERS: '2', PORT: String(await freePort()) };
    const starts = await Promise.allSettled([startGateway(shared), startGateway(shared)]);
    const started = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
    await Promise.all(started.map((one) => one.stop()));
    const faults = starts.flatMap((start) => (start.status === 'rejected' ? [String(start.reason)] : []));
    expect(started).toHaveLength(1);
    expect(faults).toHaveLength(1);
    expect(faults[0]?.split('\n')).toContain(
      `Port ${shared.PORT} of 127.0.0.1 is in use by another process: stop it, or set PORT to another port.`,
    );
    expect(faults[0]).not.toContain('a worker starts');
  });

  it('are not tried on an address that is not there: code 1', async () => {
    const { code, output } = await runGateway({
      ...fleet.environment,
      WORKERS: '2',
      PORT: '1',
      HOST: '203.0.113.1',
    });
    expect(code).toBe(1);
    expect(output).toMatch(/^This machine has no address 203\.0\.113\.1: set HOST/m);
    expect(output).not.toContain('a worker starts');
  });

  it('end the primary process with code 1', async () => {
    const endsWorkers = "import cluster from 'node:cluster'; if (cluster.isWorker) process.exit(3);";
    const { code, output } = await runGateway({
      ...fleet.environment,
      NODE_OPTIONS: preload(endsWorkers),
      WORKERS: '2',
      PORT: String(await freePort()),
    });
    expect(code).toBe(1);
    expect(output).toMatch(/^A worker ended with code 3 before it listened/m);
  });
});

describe('a worker that is stuck', () => {
  it('is replaced also when nobody calls the ops port', async () => {
    // Half a minute passes in three seconds.
    const hastenPrimary = `
      import cluster from 'node:cluster';
      const { setInterval } = globalThis;
      const now = performance.now.bind(performance);
      if (cluster.isPrimary) {
        performance.now = () => 10 * now();
        globalThis.setInterval = (callback, ms) => setInterval(callback, ms / 10);
      }`;
    await startWorkers({ NODE_OPTIONS: preload(hastenPrimary) });
    const stuck = gateway.workerPids()[0] ?? Number.NaN;
    process.kill(stuck, 'SIGSTOP');
    try {
      await until(() =>
        gateway.output().includes(`"worker":${stuck},"msg":"a worker is stuck and is killed"`),
      );
      await until(() => gateway.output().includes('a worker took the place of one that died'));
    } finally {
      if (isAlive(stuck)) process.kill(stuck, 'SIGCONT');
      expect(await gateway.stop()).toBe(0);
    }
  });
});

describe('a worker process that the system does not start', () => {
  let directory: string;
  /** The workers' Node. */
  let program: string;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'tollgate-node-'));
    program = join(directory, 'node');
  });
  afterEach(() => rm(directory, { recursive: true }));

  it('ends the start with code 1 and the error of the system', async () => {
    const { code, output } = await runGateway({
      ...fleet.environment,
      NODE_OPTIONS: preload(`process.execPath = ${JSON.stringify(program)};`),
      WORKERS: '2',
      PORT: String(await freePort()),
    });
    expect(code).toBe(1);
    expect(output.split('\n')).toContain(`A worker process could not be started: spawn ${program} ENOENT`);
    expect(output).not.toContain('a worker starts');
  });

  it('is tried again in place of one that died, while the other one serves', async () => {
    symlinkSync(process.execPath, program);
    await startWorkers({ NODE_OPTIONS: preload(`process.execPath = ${JSON.stringify(program)};`) });
    try {
      const { secret } = await new Admin(gateway.url).makeKey('one-left');
      const [first = Number.NaN] = gateway.workerPids();
      rmSync(program);
      await untilLogged('ENOENT', () => process.kill(first, 'SIGKILL'));
      // Node throws this error, where it emits the one above.
      await untilLogged('ELOOP', () => symlinkSync(program, program));
      expect(await statusOf(gateway.url, secret)).toBe(200);
      await until(async () => (await readyz(gateway.opsUrl)).components.workers === '1 of 2 ready');
      rmSync(program);
      symlinkSync(process.execPath, program);
      await untilShown(/^tollgate_ready (\d+)$/m, 2);
    } finally {
      expect(await gateway.stop()).toBe(0);
    }
  });
});

describe('two workers, at their end,', () => {
  beforeEach(() => startWorkers());
  afterEach(async () => {
    await gateway?.stop();
  });

  it('finish what they began also when SIGTERM goes to every process of the gateway', async () => {
    const pids = gateway.workerPids();
    const requests = await holdRequests();
    // The signal of the primary process is the second one that they get, as with a signal to the process group.
    for (const pid of pids) process.kill(pid, 'SIGTERM');
    await until(() => pids.every(isStopping));
    const exited = gateway.stop();
    await until(() => isStopping(gateway.pid));
    expect(await requests.finish()).toEqual([200]);
    expect(await exited).toBe(0);
    expect(pids.filter(isAlive)).toEqual([]);
    expect(await requests.areCounted()).toBe(true);
  });

  it('end with code 0 also while one of them is only just starting', async () => {
    process.kill(gateway.workerPids()[0] ?? Number.NaN, 'SIGKILL');
    // As soon as there is a process, which does not listen yet and does not know what to do with a signal.
    await until(() => forkedPids().length === 3);
    expect(await gateway.stop()).toBe(0);
    expect(forkedPids().filter(isAlive)).toEqual([]);
  });

  it('finish what they began, and end, when the primary process is killed', async () => {
    const pids = gateway.workerPids();
    expect(pids).toHaveLength(2);
    const requests = await holdRequests();
    await gateway.kill();
    await until(() => pids.every(isStopping));
    expect(await requests.finish()).toEqual([200]);
    await until(() => !pids.some(isAlive));
    expect(await requests.areCounted()).toBe(true);
  });

  it('end at once at a second SIGTERM to the primary process, with code 1', async () => {
    const pids = gateway.workerPids();
    const requests = await holdRequests();
    const exited = gateway.stop();
    await until(() => pids.every(isStopping));
    process.kill(gateway.pid, 'SIGTERM');
    expect(await exited).toBe(1);
    expect(await requests.finish()).toEqual(['cut']);
    await until(() => !pids.some(isAlive));
  });
});

describe('workers on a terminal', () => {
  it('finish what they began, and end, when it is closed', async () => {
    await requireProgram('script', 'bsdutils');
    await startWorkers({}, { isOnTerminal: true });
    // Those of the primary process and of the workers.
    const pids = [...new Set(gateway.output().match(/(?<="pid":)\d+/g))].map(Number);
    expect(pids).toHaveLength(3);
    try {
      const requests = await holdRequests();
      await gateway.kill();
      await until(async () => (await fetch(`${gateway.opsUrl}/readyz`)).status === 503);
      expect(await requests.finish()).toEqual([200]);
      await until(() => !pids.some(isAlive));
      expect(await requests.areCounted()).toBe(true);
    } finally {
      for (const pid of pids.filter(isAlive)) process.kill(pid, 'SIGKILL');
    }
  });
});
