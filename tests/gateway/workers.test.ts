import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Admin } from '../support/admin.ts';
import { burst, statusOf } from '../support/burst.ts';
import { type Fleet, startFleet } from '../support/fleet.ts';
import { freePort } from '../support/free-port.ts';
import { type GatewayProcess, runGateway, startGateway } from '../support/gateway.ts';
import { until } from '../support/until.ts';

let fleet: Fleet;
let gateway: GatewayProcess;

beforeEach(async () => {
  fleet = await startFleet(1);
  gateway = await startGateway({ ...fleet.environment, WORKERS: '2', PORT: String(await freePort()) });
});
afterEach(async () => {
  await gateway?.stop();
  await fleet?.stop();
});

/** The processes of the workers that listened so far, oldest first. */
function workerPids(): readonly number[] {
  const lines = gateway
    .output()
    .split('\n')
    .filter((line) => line.includes('"msg":"starting"'));
  return lines.map((line) => Number(JSON.parse(line).pid));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function metric(pattern: RegExp): Promise<number> {
  const text = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
  return Number(pattern.exec(text)?.[1]);
}

describe('two workers', () => {
  it('share one port, count exactly together, and show their metrics as one', async () => {
    const admin = new Admin(gateway.url);
    await admin.makePlan('workers', 60, 'hour');
    const { id, secret } = await admin.makeKey('workers', 'workers');
    expect(await burst([gateway.url], { secret, requests: 100, inFlight: 40 })).toEqual({ 200: 60, 429: 40 });
    expect(await metric(/^tollgate_requests_total\{[^}]*outcome="admitted"[^}]*\} (\d+)$/m)).toBe(60);
    expect(await metric(/^tollgate_ready (\d+)$/m)).toBe(2);
    await until(async () => (await admin.detail(id)).usage.totalRequests === 100);
  });

  it('are two again after one died', async () => {
    const [first] = workerPids();
    process.kill(first ?? 0, 'SIGKILL');
    await until(() => gateway.output().includes('a worker took the place of one that died'), {
      timeoutMs: 20_000,
    });
    await until(async () => (await metric(/^tollgate_ready (\d+)$/m)) === 2, { timeoutMs: 20_000 });
    expect(workerPids()).toHaveLength(3);
  });

  it('end with code 0 at SIGTERM, and leave no process behind', async () => {
    const pids = workerPids();
    const { secret } = await new Admin(gateway.url).makeKey('ending');
    expect(await statusOf(gateway.url, secret)).toBe(200);
    expect(await gateway.stop()).toBe(0);
    expect(pids.filter(isAlive)).toEqual([]);
  });

  it('end by themselves when the primary process is killed', async () => {
    const pids = workerPids();
    expect(pids.filter(isAlive)).toHaveLength(2);
    await gateway.kill();
    await until(() => !pids.some(isAlive), { timeoutMs: 20_000 });
  });

  it('do not start where a port is taken, and the primary process ends with code 1', async () => {
    const { code, output } = await runGateway({
      ...fleet.environment,
      WORKERS: '2',
      PORT: '1',
      HOST: '203.0.113.1',
    });
    expect(code).toBe(1);
    expect(output).toContain('could not start');
  });
});
