import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { IPrometheusRule } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule';
import { burst, statusOf } from '../support/burst.ts';
import { requireProgram } from '../support/debian-package.ts';
import { type Fleet, startFleet } from '../support/fleet.ts';
import { freePort } from '../support/free-port.ts';
import type { GatewayProcess } from '../support/gateway.ts';
import { until } from '../support/until.ts';
import { parseManifests } from './kustomize.ts';
import { queriesOfRunbook } from './runbook-queries.ts';

const RULE = 'k8s/components/monitoring/prometheus-rule.yaml';
const DASHBOARD = 'k8s/components/monitoring/dashboard.json';
/** What comes from redis_exporter, which is not there. */
const FOREIGN = /\bredis_(memory|evicted|up|cpu|db)_?/;

let fleet: Fleet<GatewayProcess>;
/** Each ends a request to /wait that the backend has. */
const waiting: (() => void)[] = [];
let opsUrl: string;
let directory: string;
let prometheus: ChildProcess;
let prometheusUrl: string;

beforeAll(async () => {
  const program = await requireProgram('prometheus', 'prometheus');
  // Few connections, which two keys can have all of.
  const settings = { METRICS_PER_KEY: 'top:2', AUTHORIZE_PORT: '0', BACKEND_CONNECTIONS: '2' };
  fleet = await startFleet(1, settings, (req, res) => {
    if (req.url === '/wait') waiting.push(() => res.end('ok'));
    else if (req.url === '/reset') req.socket.destroy();
    else res.end('ok');
  });
  opsUrl = fleet.replicas[0]?.opsUrl ?? '';
  directory = await mkdtemp(join(tmpdir(), 'tollgate-prometheus-'));
  const port = await freePort();
  prometheusUrl = `http://127.0.0.1:${port}`;
  await writeFile(join(directory, 'prometheus.yaml'), configuration());
  prometheus = spawn(program, [
    `--config.file=${join(directory, 'prometheus.yaml')}`,
    `--storage.tsdb.path=${join(directory, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ]);
}, 300_000);
afterAll(async () => {
  prometheus?.kill('SIGKILL');
  await fleet?.stop();
  await rm(directory, { recursive: true, force: true });
});

function configuration(): string {
  return JSON.stringify({
    global: { scrape_interval: '500ms' },
    scrape_configs: [{ job_name: 'tollgate', static_configs: [{ targets: [new URL(opsUrl).host] }] }],
  });
}

/** What Prometheus responds to a query: a value for each series. */
async function query(expression: string): Promise<readonly number[]> {
  const response = await fetch(`${prometheusUrl}/api/v1/query?query=${encodeURIComponent(expression)}`);
  const { status, data, error } = (await response.json()) as {
    status: string;
    error?: string;
    data: { result: readonly { value: readonly [number, string] }[] };
  };
  if (status !== 'success') throw new Error(`${expression}: ${error}`);
  return data.result.map(({ value: [, text] }) => Number(text));
}

/** Every way for a request to end, once a round. */
async function traffic(secret: string): Promise<void> {
  const url = fleet.replicas[0]?.url ?? '';
  await burst([url], { secret, requests: 5, inFlight: 1 });
  await statusOf(url, 'tg_wrong');
  await statusOf(`${url}/reset`, secret);
  await statusOf(`${fleet.replicas[0]?.authorizeUrl}/authorize/envoy/`, secret);
}

describe('the metrics', () => {
  it('have nothing in them that `promtool check metrics` would have otherwise', async () => {
    const promtool = await requireProgram('promtool', 'prometheus');
    const { id, secret } = await fleet.admin.makeKey('checked');
    await traffic(secret);
    const text = await (await fetch(`${opsUrl}/metrics`)).text();
    expect(text).toContain(`tollgate_key_requests_total{key_id="${id}",outcome="forwarded"} 5`);
    const check = Promise.withResolvers<string>();
    const child = execFile(promtool, ['check', 'metrics'], (error, stdout, stderr) =>
      check.resolve(`${error?.code ?? ''}${stdout}${stderr}`),
    );
    child.stdin?.end(text);
    expect(await check.promise).toBe('');
  });

  it('are scraped by Prometheus, and every query of dashboard and runbook has a result', async () => {
    await fleet.admin.makePlan('seven', 7, 'hour');
    const { secret } = await fleet.admin.makeKey('watched', 'seven');
    await until(async () => (await fetch(`${prometheusUrl}/-/ready`).catch(() => undefined))?.ok === true);
    await until(async () => (await query('up{job="tollgate"}'))[0] === 1);
    const expressions = expressionsOf(JSON.parse(await readFile(DASHBOARD, 'utf8')))
      .concat(await queriesOfRunbook())
      .filter((expression) => !FOREIGN.test(expression))
      .map((expression) =>
        expression
          .replaceAll('$__rate_interval', '30s')
          .replaceAll('$namespace', '.*')
          .replaceAll('$job', 'tollgate'),
      );
    expect(expressions.length).toBeGreaterThan(30);
    const unanswered = new Set(expressions);
    await until(async () => {
      // More of everything between two scrapes, so that rates are above zero.
      await traffic(secret);
      for (const expression of unanswered) {
        const values = await query(expression);
        if (values.length > 0 && !values.some(Number.isNaN)) unanswered.delete(expression);
      }
      return unanswered.size === 0;
    }).catch(() => {});
    expect([...unanswered]).toEqual([]);
    const [rate = 0] = await query('sum(rate(tollgate_requests_total{job="tollgate"}[30s]))');
    expect(rate).toBeGreaterThan(0);
    const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string };
    expect(await query(`tollgate_build_info{version="${version}"}`)).toEqual([1]);
  });
});

describe('the alert', () => {
  /** Resolves once Prometheus finds that the alert's expression holds, or that it does not. Its spans are as short as the scrapes here. */
  async function untilAlert(name: string, holds: boolean): Promise<void> {
    const expression = (await alertExpression(name)).replaceAll(/\[\d+m\]/g, '[2s]');
    await until(async () => (await query(expression)).length > 0 === holds);
  }

  it('TollgateBackendSaturated sees requests that wait for the backend, as the runbook says', async () => {
    const url = fleet.replicas[0]?.url ?? '';
    const secrets = await Promise.all(
      ['one', 'other'].map(async (name) => (await fleet.admin.makeKey(name)).secret),
    );
    await untilAlert('TollgateBackendSaturated', false);
    const sent = secrets.flatMap((secret) => [1, 2].map(() => statusOf(`${url}/wait`, secret)));
    await untilAlert('TollgateBackendSaturated', true);
    await until(async () =>
      (await query('tollgate_backend_requests_in_use / tollgate_backend_connections_limit')).includes(1),
    );
    // The backend is fast again.
    const done = Promise.all(sent);
    await until(async () => {
      for (const respond of waiting.splice(0)) respond();
      return (await query('tollgate_backend_requests_in_use'))[0] === 0;
    });
    expect(await done).toEqual([200, 200, 200, 200]);
    await untilAlert('TollgateBackendSaturated', false);
  });

  it('TollgateReplicaSaturated sees a replica that gets too little CPU time', async () => {
    // As a limit of CPU time does it: stopped for most of each period.
    const line = 'while kill -STOP "$0"; do sleep 0.15; kill -CONT "$0"; sleep 0.05; done';
    const throttle = spawn('/bin/sh', ['-c', line, String(fleet.replicas[0]?.pid)]);
    try {
      await untilAlert('TollgateReplicaSaturated', true);
    } finally {
      throttle.kill('SIGKILL');
      await once(throttle, 'exit');
      process.kill(fleet.replicas[0]?.pid ?? Number.NaN, 'SIGCONT');
    }
    await untilAlert('TollgateReplicaSaturated', false);
  });
});

/** The expression of an alert. */
async function alertExpression(name: string): Promise<string> {
  const { spec } = parseManifests(await readFile(RULE, 'utf8'))[0] as unknown as IPrometheusRule;
  const rule = (spec.groups ?? []).flatMap(({ rules = [] }) => rules).find(({ alert }) => alert === name);
  if (rule === undefined) throw new Error(`there is no alert ${name}`);
  return String(rule.expr);
}

/** Every `expr` anywhere in a dashboard. */
function expressionsOf(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) =>
    key === 'expr' && typeof child === 'string' ? [child] : expressionsOf(child),
  );
}
