import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parseManifests } from '../operations/kustomize.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import type { RunningGateway } from '../support/gateway.ts';
import { ask } from './support/ask.ts';

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
    kinds: ['Middleware', 'IngressRoute'],
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
    kinds: ['AuthorizationPolicy', 'EnvoyFilter'],
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

let fleet: Fleet<RunningGateway>;
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
    const headers = { ...forged, ...fields, authorization: `Bearer ${secret}` };
    const allowed = await ask(url, path, { method, headers });
    expect([allowed.status, allowed.text]).toEqual([200, '']);
    expect(allowed.headers).toMatchObject({ 'tollgate-key-id': id, 'x-ratelimit-remaining': '4' });
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
