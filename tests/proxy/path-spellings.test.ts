import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { PathPattern } from '../../src/paths/path-pattern.ts';
import { REJECTED, type Resource, ROUTES, RUN_HERE, SPELLINGS } from '../paths/spellings/spellings.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';
import { until } from '../support/until.ts';
import { planOf, TestGateway } from './support/gateway.ts';
import {
  type PathReadingBackend,
  startExpress,
  startNginxLocations,
} from './support/path-reading-backends.ts';

const COSTS: Readonly<Record<Resource, number>> = { search: 7, batch: 25, item: 3 };
const LIMIT = 1_000_000;

const patternOf = (resource: Resource): PathPattern => ({
  path: ROUTES[resource].path,
  methods: [ROUTES[resource].method],
});
const RESOURCES = ['search', 'batch', 'item'] as const;
const PLAN = planOf({
  limit: LIMIT,
  period: 'year',
  additionalLimits: RESOURCES.map((limitId) => ({
    limitId,
    limit: LIMIT,
    period: 'year',
    match: [patternOf(limitId)],
  })),
  costs: [
    ...RESOURCES.map((resource) => ({ ...patternOf(resource), cost: COSTS[resource] })),
    { path: '/v1/health', cost: 0 },
  ],
});
const ROWS = SPELLINGS.map((spelling) => ({ method: ROUTES[spelling.resource].method, ...spelling }));

describe('the table of spellings', () => {
  const backends: Record<string, PathReadingBackend> = {};
  beforeAll(async () => {
    [backends.nginx, backends.Express] = await Promise.all([startNginxLocations(), startExpress()]);
  });
  afterAll(() => Promise.all(Object.values(backends).map((backend) => backend.stop())));

  it.each(RUN_HERE)('says of each row whether %s reads it so', async (name) => {
    const wrong: string[] = [];
    for (const { resource, method, target, readBy } of ROWS) {
      const isRead = (await backends[name]?.resourceOf(method, target)) === resource;
      if (isRead !== name in readBy) wrong.push(`${method} ${target}: ${isRead}`);
    }
    expect(wrong).toEqual([]);
  });
});

describe('a gateway', () => {
  const received: string[] = [];
  let backend: Server;
  let gateway: TestGateway;
  beforeAll(async () => {
    backend = createServer((req, res) => {
      received.push(req.url ?? '');
      res.end();
    });
    const port = await listenOnLoopback(backend);
    gateway = await TestGateway.start(`http://127.0.0.1:${port}`, {
      endpointPatterns: RESOURCES.map((resource) => ROUTES[resource].path),
    });
    await gateway.change({ plan: PLAN });
  });
  afterAll(async () => {
    await gateway?.stop();
    backend?.close();
    backend?.closeAllConnections();
  });

  const responseTo = async (requestLine: string) => {
    const peer = await gateway.send(gateway.head(requestLine, 'Content-Length: 0', 'Connection: close'));
    return peer.head();
  };
  const field = (head: string, name: string) => new RegExp(`^${name}: (.*)\r$`, 'im').exec(head)?.[1] ?? '';

  it('limits, charges and names every spelling of the table, and forwards it byte for byte', async () => {
    let left = LIMIT;
    for (const { resource, method, target } of ROWS) {
      const head = await responseTo(`${method} ${target}`);
      const now = Number(/"test-plan";r=(\d+);/.exec(field(head, 'RateLimit'))?.[1]);
      expect([target, field(head, 'RateLimit-Policy')]).toEqual([
        target,
        expect.stringContaining(`"test-plan.${resource}"`),
      ]);
      expect([target, left - now >= COSTS[resource]]).toEqual([target, true]);
      left = now;
      expect(received.at(-1)).toBe(target.replace('http://api.example.com', ''));
    }
    await until(() => gateway.recorded.length === ROWS.length);
    expect(gateway.recorded.map(({ endpoint }) => endpoint)).toEqual(
      ROWS.map(({ resource }) => ROUTES[resource].path),
    );
  });

  it('rejects what it rejects, which no backend gets', async () => {
    const before = received.length;
    for (const requestLine of REJECTED)
      expect([requestLine, await responseTo(requestLine)]).toEqual([
        requestLine,
        expect.stringMatching(/^HTTP\/1\.1 400 /),
      ]);
    expect(received).toHaveLength(before);
  });

  it.each(['/v1/health/', '/v1/h%65alth', '/V1/health', '/v1//health', '/v1/health;a'])(
    'forwards %s for free neither if only its canonical form is free',
    async (target) => {
      const remaining = async (path: string) =>
        Number(field(await responseTo(`GET ${path}`), 'X-RateLimit-Remaining'));
      const before = await remaining('/v1/health');
      expect(await remaining('/v1/health')).toBe(before);
      expect(await remaining(target)).toBe(before - 1);
    },
  );
});
