import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { IPrometheusRule } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule';
import { parse } from 'yaml';
import { requireProgram } from '../support/debian-package.ts';
import { readCompose } from './compose.ts';
import { parseManifests } from './kustomize.ts';
import { queriesOfRunbook } from './runbook-queries.ts';

const run = promisify(execFile);
const RULE = 'k8s/components/monitoring/prometheus-rule.yaml';
const DASHBOARD = 'k8s/components/monitoring/dashboard.json';
const RUNBOOK = 'docs/runbook.md';
const CASES = 'tests/operations/alerts.promtool.yaml';
/** What others export: Node's client library, redis_exporter. */
const FOREIGN = /^(process_|nodejs_|redis_)/;

let promtool: string;
let directory: string;
let rules: IPrometheusRule;

beforeAll(async () => {
  promtool = await requireProgram('promtool', 'prometheus');
  directory = await mkdtemp(join(tmpdir(), 'tollgate-alerts-'));
  rules = parseManifests(await readFile(RULE, 'utf8'))[0] as unknown as IPrometheusRule;
  await writeFile(join(directory, 'rules.yaml'), await rulesOfCompose());
  await copyFile(CASES, join(directory, 'cases.yaml'));
}, 300_000);

afterAll(() => rm(directory, { recursive: true, force: true }));

/** The rules as the Prometheus of docker-compose.yml gets them: cut out of the PrometheusRule by the sed of its start command. */
async function rulesOfCompose(): Promise<string> {
  const command = String((await readCompose()).services.prometheus?.command);
  const script = /sed '([^']+)' (\S+) >/.exec(command)?.[1];
  if (script === undefined) throw new Error(`no sed in ${command}`);
  return (await run('sed', [script, RULE])).stdout;
}

const alerts = () => (rules.spec.groups ?? []).flatMap((group) => group.rules ?? []);

describe('the alert rules', () => {
  it('are the same for compose and the operator, and Prometheus accepts them', async () => {
    expect(parse(await readFile(join(directory, 'rules.yaml'), 'utf8'))).toEqual(rules.spec);
    const { stdout } = await run(promtool, ['check', 'rules', join(directory, 'rules.yaml')]);
    expect(stdout).toContain(`SUCCESS: ${alerts().length} rules found`);
    await run(promtool, ['check', 'config', '--syntax-only', 'k8s/compose/prometheus.yaml']);
  });

  it('fire when they should, and only then', async () => {
    const { stdout } = await run(promtool, ['test', 'rules', join(directory, 'cases.yaml')]);
    expect(stdout).toContain('SUCCESS');
  });

  it('have each a case in which they fire, and a section in the runbook', async () => {
    const cases = parse(await readFile(CASES, 'utf8')) as {
      tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[];
    };
    const fired = cases.tests
      .flatMap((test) => test.alert_rule_test)
      .filter(({ exp_alerts }) => exp_alerts.length > 0)
      .map(({ alertname }) => alertname);
    const runbook = await readFile(RUNBOOK, 'utf8');
    const sections = [...runbook.matchAll(/^### (Tollgate\w+)$/gm)].map(([, name]) => name);
    const names = alerts().map(({ alert }) => alert);
    expect([...new Set(fired)].toSorted()).toEqual(names.toSorted());
    expect(sections.toSorted()).toEqual(names.toSorted());
    for (const { alert, annotations } of alerts()) {
      expect(annotations?.runbook).toBe(`docs/runbook.md#${alert?.toLowerCase()}`);
    }
  });
});

describe('alerts, dashboard and runbook', () => {
  it('use only metrics that the gateway has', async () => {
    const files = (await readdir('src', { recursive: true })).filter((file) => file.endsWith('.ts'));
    const source = (await Promise.all(files.map((file) => readFile(join('src', file), 'utf8')))).join('\n');
    const used = expressionsOf(JSON.parse(await readFile(DASHBOARD, 'utf8')))
      .concat(await queriesOfRunbook())
      .concat(alerts().map(({ expr }) => String(expr)))
      .flatMap((expression) => expression.match(/\b[a-z]+(_[a-z]+)+\b(?=[{[) ]|$)/g) ?? [])
      .filter((name) => !FOREIGN.test(name) && name.startsWith('tollgate_'))
      .map((name) => name.replace(/_(bucket|sum|count)$/, ''));
    expect(used.length).toBeGreaterThan(20);
    expect([...new Set(used)].filter((name) => !source.includes(`'${name}'`))).toEqual([]);
  });

  it('ask only for what Prometheus can parse', async () => {
    const expressions = [
      ...expressionsOf(JSON.parse(await readFile(DASHBOARD, 'utf8'))),
      ...(await queriesOfRunbook()),
    ];
    const groups = [
      {
        name: 'queries',
        rules: expressions.map((expr, index) => ({
          record: `query:${index}`,
          expr: withVariables(expr),
        })),
      },
    ];
    const file = join(directory, 'queries.yaml');
    await writeFile(file, JSON.stringify({ groups }));
    const { stdout } = await run(promtool, ['check', 'rules', file]);
    expect(stdout).toContain(`SUCCESS: ${expressions.length} rules found`);
  });
});

describe('the dashboard', () => {
  it('tells installations apart by namespace and job, as the alerts do', async () => {
    const selectors = expressionsOf(JSON.parse(await readFile(DASHBOARD, 'utf8')))
      // Redis has one exporter for all.
      .filter((expression) => !expression.includes('redis_memory') && !expression.includes('redis_evicted'))
      .flatMap((expression) => expression.match(/\b(?:tollgate|process)_\w+(?:\{[^}]*\})?/g) ?? []);
    expect(selectors.length).toBeGreaterThan(40);
    for (const selector of selectors) expect(selector).toContain('{namespace=~"$namespace",job=~"$job"');
  });
});

describe('dashboard and runbook', () => {
  it('count the replicas that decide without Redis, however many workers each has', async () => {
    const isAboutDegraded = (query: string) => query.includes('tollgate_limiter_degraded');
    const number = expressionsOf(JSON.parse(await readFile(DASHBOARD, 'utf8'))).find(isAboutDegraded);
    const part = (await queriesOfRunbook()).find(isAboutDegraded);
    const sample = (expr: string | undefined, value: number) => ({
      ...{ expr: withVariables(expr ?? ''), eval_time: '0m', exp_samples: [{ labels: '{}', value }] },
    });
    const test = {
      interval: '1m',
      input_series: [4, 0, 0, 0].map((workers, index) => ({
        series: `tollgate_limiter_degraded{instance="${index}"}`,
        values: `${workers}`,
      })),
      promql_expr_test: [sample(number, 1), sample(part, 0.25)],
    };
    const file = join(directory, 'degraded.yaml');
    await writeFile(file, JSON.stringify({ tests: [test] }));
    const { stdout } = await run(promtool, ['test', 'rules', file]);
    expect(stdout).toContain('SUCCESS');
  });
});

describe('the runbook', () => {
  it('has a query beside each alert', async () => {
    const sections = (await readFile(RUNBOOK, 'utf8'))
      .split(/^#+ /m)
      .filter((text) => text.startsWith('Tollgate'));
    expect(sections).toHaveLength(alerts().length);
    for (const section of sections) expect(section).toContain('```promql\n');
  });
});

/** An expression of the dashboard with all installations chosen. */
function withVariables(expression: string): string {
  return expression
    .replaceAll('$__rate_interval', '5m')
    .replaceAll('$namespace', '.*')
    .replaceAll('$job', '.*');
}

/** Every `expr` anywhere in a dashboard. */
function expressionsOf(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) =>
    key === 'expr' && typeof child === 'string' ? [child] : expressionsOf(child),
  );
}
