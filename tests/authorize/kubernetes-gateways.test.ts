import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { readdir, readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parseManifests } from '../operations/kustomize.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { ask } from './support/ask.ts';
import { DECISION_FIELDS } from './support/decision-fields.ts';

/** A call as a gateway that can't run here makes it about `POST /v1/orders?x=%2F`, and what its example must have. */
interface Call {
  readonly gateway: string;
  /** Where the call is made: repository and file. */
  readonly source: string;
  readonly method: string;
  readonly path: string;
  readonly fields: Readonly<Record<string, string>>;
  /** What a consumer may send by itself that this gateway lets through. */
  readonly forged: Readonly<Record<string, string>>;
  /** The status of a 429. */
  readonly limited: number;
  /** The file, and the objects in it. */
  readonly example: string;
  readonly kinds: readonly string[];
}

const CALLS: readonly Call[] = [
  {
    gateway: 'Traefik',
    source: 'traefik/traefik pkg/middlewares/auth/forward.go, writeHeader',
    method: 'GET',
    path: '/authorize/forwarded',
    fields: {
      'X-Forwarded-For': '203.0.113.7',
      'X-Forwarded-Host': 'api.example.com',
      'X-Forwarded-Method': 'POST',
      'X-Forwarded-Proto': 'https',
      'X-Forwarded-Uri': '/v1/orders?x=%2F',
    },
    forged: {
      'X-Original-Method': 'GET',
      'X-Original-URI': '/free',
      'X-Original-URL': 'http://a.example/free',
    },
    limited: 429,
    example: 'traefik',
    kinds: ['Middleware', 'Middleware', 'Middleware', 'IngressRoute'],
  },
  {
    gateway: 'ingress-nginx',
    source: 'kubernetes/ingress-nginx rootfs/etc/nginx/template/nginx.tmpl, location of $externalAuth',
    method: 'HEAD',
    path: '/authorize/original-url?rejected=403',
    fields: {
      'X-Original-URI': '/v1/orders?x=%2F',
      'X-Scheme': 'https',
      'X-Request-ID': '1aeef2c74c0d7905d0d736276c3d99b2',
      'X-Original-URL': 'https://api.example.com/v1/orders?x=%2F',
      'X-Original-Method': 'POST',
      'X-Sent-From': 'nginx-ingress-controller',
      'X-Real-IP': '203.0.113.7',
      'X-Forwarded-For': '203.0.113.7',
      'X-Auth-Request-Redirect': '/v1/orders?x=%2F',
    },
    forged: { 'X-Forwarded-Uri': '/free', 'X-Forwarded-Method': 'GET' },
    limited: 403,
    example: 'ingress-nginx',
    kinds: ['Ingress'],
  },
  {
    gateway: 'Istio',
    source:
      'istio/istio pilot/pkg/security/authz/builder/extauthz.go, generateHTTPConfig: the ext_authz of Envoy',
    method: 'POST',
    path: '/authorize/envoy/v1/orders?x=%2F',
    fields: {
      'content-length': '0',
      'x-envoy-internal': 'true',
      'x-forwarded-for': '203.0.113.7,10.0.0.1',
      'x-envoy-expected-rq-timeout-ms': '5000',
    },
    forged: {},
    limited: 429,
    example: 'istio',
    kinds: ['AuthorizationPolicy', 'DestinationRule', 'EnvoyFilter'],
  },
  {
    gateway: 'Envoy Gateway',
    source: 'envoyproxy/gateway internal/xds/translator/extauth.go, httpService: the ext_authz of Envoy',
    method: 'POST',
    path: '/authorize/envoy/v1/orders?x=%2F',
    fields: {
      'content-length': '0',
      'x-forwarded-for': '203.0.113.7',
      'x-envoy-expected-rq-timeout-ms': '10000',
    },
    forged: { 'X-Original-URI': '/free', 'X-Forwarded-Uri': '/free', 'X-Original-Method': 'GET' },
    limited: 429,
    example: 'envoy-gateway',
    kinds: ['SecurityPolicy', 'ClientTrafficPolicy', 'ReferenceGrant'],
  },
];

/** Every field of an allowed request that a backend gets. */
const TO_BACKEND = ['external-id', 'customer-id', 'key-expires', 'key-id', 'plan'];

/** Where other gateways say which request they ask about, and a consumer may say it to a backend. */
const OF_DIALECTS = [
  'x-original-uri',
  'x-original-url',
  'x-original-method',
  'x-forwarded-uri',
  'x-forwarded-method',
];

/** Fields of a call that are no part of the decision. */
const OF_THE_CALL: ReadonlySet<string> = new Set([
  ...['host', 'connection', 'content-length', 'transfer-encoding', 'upgrade', 'expect', 'via'],
  ...['tollgate-authorize-token', 'cookie'],
]);

let fleet: Fleet;
let url: string;
beforeAll(async () => {
  fleet = await startInProcessFleet(1, {
    ...{ AUTHORIZE_PORT: '0', BACKEND_URL: '', TRUSTED_PROXIES: '127.0.0.1,10.0.0.0/8' },
  });
  url = fleet.replicas[0]?.authorizeUrl ?? '';
});
afterAll(() => fleet?.stop());

describe.each(CALLS)('a call of $gateway', ({ example, kinds, method, path, fields, forged, limited }) => {
  it('is decided about the request of the consumer, whatever fields that sends', async () => {
    await fleet.admin.makePlan(`of-${example}`, 10, 'day');
    // A request that is read otherwise costs one.
    await fleet.admin.call('PATCH', `/rate-limit/of-${example}`, {
      costs: [{ methods: ['POST'], path: '/v1/orders', cost: 6 }],
    });
    const { id, secret } = await fleet.admin.makeKey(`behind ${example}`, `of-${example}`);
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { allowedIps: ['203.0.113.7'] });
    const cookie = 'a=1; __Host-tollgate=tgs_x; b=2';
    const headers = { ...forged, ...fields, authorization: `Bearer ${secret}`, cookie };
    const allowed = await ask(url, path, { method, headers });
    expect([allowed.status, allowed.text]).toEqual([200, '']);
    expect(allowed.headers).toMatchObject({ 'tollgate-key-id': id, 'x-ratelimit-remaining': '4' });
    // For a gateway that takes the cookies from the response, whether or not people sign in.
    expect(allowed.headers.cookie).toBe('a=1; b=2');
    const rejected = await ask(url, path, { method, headers });
    expect(rejected.status).toBe(limited);
    expect(rejected.headers['tollgate-status'] ?? '429').toBe('429');
    const elsewhere = await ask(url, path, {
      method,
      headers: { ...headers, 'X-Forwarded-For': '198.51.100.1', 'x-forwarded-for': '198.51.100.1' },
    });
    const body = JSON.parse(String(elsewhere.headers['tollgate-body'] ?? elsewhere.text));
    expect([elsewhere.status, body.code]).toEqual([403, 'address_not_allowed']);
  });

  it('is what its example in k8s/examples configures, with every field for the backend', async () => {
    const text = await readFile(`k8s/examples/authorize/${example}.yaml`, 'utf8');
    expect(parseManifests(text).map(({ kind }) => kind)).toEqual(kinds);
    expect(text).toContain(path.replace(/(?<=envoy)\/.*/, ''));
    expect(text).toContain('tollgate-authorize');
    for (const field of TO_BACKEND) expect(text.toLowerCase()).toContain(`tollgate-${field}`);
    // What Envoy says of a request that passed without a decision is not for a consumer to say.
    expect(text.includes('x-envoy-auth-failure-mode-allowed')).toBe(path.startsWith('/authorize/envoy'));
    // By these a request would pass without a decision, or a consumer would choose what is asked about.
    expect(text).not.toMatch(/(failOpen|trustForwardHeader): true/);
  });
});

describe('the examples that list the fields of a call', () => {
  /** The names of the fields that are read from the requests which `ask` makes. */
  async function readDuring(run: () => Promise<void>): Promise<string[]> {
    const names = new Set<string>();
    const watch = (message: unknown): void => {
      const { request } = message as { readonly request: IncomingMessage };
      request.headers = new Proxy(request.headers, {
        get(headers, name: string) {
          names.add(name);
          return headers[name];
        },
      });
    };
    subscribe('http.server.request.start', watch);
    await run();
    unsubscribe('http.server.request.start', watch);
    return [...names].filter((name) => !OF_THE_CALL.has(name)).toSorted();
  }

  it.each([
    ['istio', /includeRequestHeadersInCheck: \[([^\]]*)\]/],
    ['envoy-gateway', /headersToExtAuth:\s*-([^:]*?)\s+http:/],
  ])('in %s.yaml have every one that a decision reads', async (example, list) => {
    await fleet.admin.makePlan(`read-${example}`, 10, 'day');
    const { id, secret } = await fleet.admin.makeKey('read', `read-${example}`);
    const allowedOrigins = ['https://app.example.com'];
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, {
      allowedOrigins,
      allowedIps: ['203.0.113.7'],
    });
    const origin = { origin: 'https://app.example.com', 'x-forwarded-for': '203.0.113.7' };
    const preflight = { ...origin, 'access-control-request-method': 'PUT' };
    const read = await readDuring(async () => {
      const fields = [
        { ...origin, authorization: `Bearer ${secret}` },
        { 'x-forwarded-for': '203.0.113.7', authorization: `Bearer ${secret}`, 'sec-fetch-site': 'none' },
        { authorization: 'Bearer unknown' },
      ];
      for (const headers of fields) await ask(url, '/authorize/envoy/v1', { headers });
      await ask(url, '/authorize/envoy/v1', { method: 'OPTIONS', headers: preflight });
    });
    expect(read).toEqual(
      expect.arrayContaining(['authorization', 'origin', 'sec-fetch-site', 'x-customer-id']),
    );
    const [, listed = ''] = list.exec(await readFile(`k8s/examples/authorize/${example}.yaml`, 'utf8')) ?? [];
    expect(listed.split(/[\s,-]*[\s,][\s,-]*/)).toEqual(expect.arrayContaining(read));
  });
});

describe('the fields of a decision', () => {
  it('are all that the source of the decision names', async () => {
    const sources = (await readdir('src', { recursive: true })).filter((file) =>
      /^(proxy|authorize)\/.*\.ts$/.test(file),
    );
    const texts = await Promise.all(sources.map((file) => readFile(`src/${file}`, 'utf8')));
    const named = texts.flatMap(
      (text) =>
        text.match(
          /(?<=['`])tollgate-[a-z-]+[a-z](?=['`])|(?<=\\n)Tollgate-[A-Za-z-]+(?=:)|(?<=['`])Tollgate-[A-Za-z-]+(?=['`])/g,
        ) ?? [],
    );
    expect(new Set(named.map((name) => name.toLowerCase()))).toEqual(new Set(DECISION_FIELDS));
  });

  it.each([
    ['traefik', '- Cookie', 'X-Original-', '^(Tollgate-|', 'Connection: Upgrade', 'Connection: ""'],
    ['ingress-nginx', ',Cookie', ...DECISION_FIELDS, ...OF_DIALECTS],
    ['istio', 'prefix: tollgate-', 'key: connection, value: upgrade', ...OF_DIALECTS],
    ['envoy-gateway', ...DECISION_FIELDS, ...OF_DIALECTS],
  ])('are removed by %s.yaml', async (example, ...parts) => {
    const text = (await readFile(`k8s/examples/authorize/${example}.yaml`, 'utf8')).toLowerCase();
    const removing = text.split(/earlyrequestheaders:|request_mutations:/).at(-1);
    for (const part of parts) expect(removing).toContain(part.toLowerCase());
  });

  it.each([
    ['traefik', /(customResponseHeaders:\n +Tollgate-Cost: ""[\s\S]*){2}/],
    ['ingress-nginx', /`hide-headers: Tollgate-Cost`/],
    ['istio', /response_headers_to_remove:\s+\[\s+ratelimit-policy,[^\]]* tollgate-cost,\s+\]/],
    ['envoy-gateway', /lateResponseHeaders:\n +remove:\n +- tollgate-cost/],
  ])('and the cost that a backend reports: %s.yaml keeps it from the consumer', async (example, lines) => {
    expect(await readFile(`k8s/examples/authorize/${example}.yaml`, 'utf8')).toMatch(lines);
  });

  it('are not removed after the decision by Traefik, which goes by what a consumer names in Connection', async () => {
    const text = await readFile('k8s/examples/authorize/traefik.yaml', 'utf8');
    const order = [...text.matchAll(/middlewares:\n +- name: (.+)\n +- name: (.+)\n/g)].map(
      ([, ...names]) => names,
    );
    expect(order).toEqual([
      ['websocket', 'tollgate'],
      ['no-upgrade', 'tollgate'],
    ]);
  });

  it('and the cookies of the console: Istio removes these as Envoy does', async () => {
    const code = (text: string): string[] => {
      const [, indent = '', after = ''] = /^( *)inline_string: \|\n([\s\S]*)$/m.exec(text) ?? [];
      const lines = after.split('\n');
      const end = lines.findIndex((line) => !line.startsWith(`${indent} `));
      return lines.slice(0, end).map((line) => line.trim());
    };
    const [documented, istio] = [
      code(await readFile('docs/authorize.md', 'utf8')),
      code(await readFile('k8s/examples/authorize/istio.yaml', 'utf8')),
    ];
    expect(documented).toContain('function envoy_on_request(handle)');
    expect(istio).toEqual(documented);
  });
});
