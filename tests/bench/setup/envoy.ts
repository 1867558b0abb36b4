import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../support/free-port.ts';
import { type BenchKey, type Candidate, WINDOW_MS } from './candidate.ts';
import { CANDIDATE_CORE, startListening } from './pinned-process.ts';
import type { YardstickWorld } from './yardsticks.ts';

/** Paths of the two programs that together do the work of a gateway. */
export interface EnvoyPrograms {
  readonly envoy: string;
  /** The service of envoyproxy/ratelimit. */
  readonly ratelimit: string;
}

const DOMAIN = 'bench';
/** How long Envoy waits for a decision: by default 20 ms, after which it lets a request through uncounted. */
const DECISION_TIMEOUT = '5s';

/** Envoy with one worker, which asks envoyproxy/ratelimit beside it, which counts in Redis. Both are measured as one gateway. */
export async function startEnvoy(
  world: YardstickWorld,
  { envoy, ratelimit }: EnvoyPrograms,
): Promise<Candidate> {
  const { programs } = world;
  const directory = join(world.directory, 'envoy');
  const [port, grpcPort, httpPort, debugPort] = await Promise.all([1, 2, 3, 4].map(() => freePort()));
  if (port === undefined || grpcPort === undefined) throw new Error('There is no free port.');
  await mkdir(join(directory, 'limits/config'), { recursive: true });
  // YAML takes JSON as it is.
  await writeFile(join(directory, 'limits/config/bench.yaml'), JSON.stringify(limits(world.keys)));
  await writeFile(join(directory, 'envoy.json'), JSON.stringify(configuration(world, port, grpcPort)));
  const pinned = { taskset: programs.taskset, cores: String(CANDIDATE_CORE) };
  const service = await startListening(grpcPort, {
    ...pinned,
    command: [ratelimit],
    environment: {
      ...{ HOST: '127.0.0.1', PORT: String(httpPort), GRPC_HOST: '127.0.0.1', GRPC_PORT: String(grpcPort) },
      ...{ DEBUG_HOST: '127.0.0.1', DEBUG_PORT: String(debugPort), USE_STATSD: 'false', LOG_LEVEL: 'warn' },
      ...{ REDIS_SOCKET_TYPE: 'tcp', REDIS_URL: `127.0.0.1:${world.redisPort}` },
      ...{ RUNTIME_ROOT: directory, RUNTIME_SUBDIRECTORY: 'limits', RUNTIME_WATCH_ROOT: 'false' },
      // A key that is over its limit is rejected from memory, as a cached rejection is.
      LOCAL_CACHE_SIZE_IN_BYTES: '1000000',
    },
  });
  const command = proxyCommand(envoy, join(directory, 'envoy.json'));
  const proxy = await startListening(port, { ...pinned, command }).catch(async (error: unknown) => {
    await service.stop();
    throw error;
  });
  return {
    name: 'envoy-ratelimit',
    port,
    pids: () => [...proxy.pids(), ...service.pids()],
    counts: {
      redisDatabase: 0,
      countKey: (id) => `${DOMAIN}_key_${id}_${Math.floor(Date.now() / WINDOW_MS) * (WINDOW_MS / 1000)}`,
    },
    stop: async () => {
      await proxy.stop();
      await service.stop();
    },
  };
}

/** Envoy with one worker. */
export function proxyCommand(envoy: string, configurationFile: string): readonly string[] {
  return [
    ...[envoy, '-c', configurationFile, '--concurrency', '1'],
    ...['--disable-hot-restart', '--log-level', 'error'],
  ];
}

/** An ample limit for each key, and those of keys with less. */
function limits(keys: readonly BenchKey[]): object {
  const ample = Math.max(...keys.map(({ limit }) => limit));
  const perDay = (limit: number) => ({ rate_limit: { unit: 'day', requests_per_unit: limit } });
  return {
    domain: DOMAIN,
    descriptors: [
      { key: 'key', ...perDay(ample) },
      ...keys
        .filter(({ limit }) => limit < ample)
        .map(({ id, limit }) => ({ key: 'key', value: id, ...perDay(limit) })),
    ],
  };
}

const TYPES = 'type.googleapis.com/envoy.extensions';
const KEY_ID = 'x-key-id';

/** Checks the API key, asks for a decision on its id, and forwards to the backend. */
function configuration({ keys, backendPort }: YardstickWorld, port: number, grpcPort: number): object {
  return proxyConfiguration(port, backendPort, {
    filters: [
      filter('api_key_auth', 'api_key_auth.v3.ApiKeyAuth', {
        credentials: keys.map(({ secret, id }) => ({ key: secret, client: id })),
        key_sources: [{ header: 'Authorization' }],
        forwarding: { header: KEY_ID, hide_credentials: false },
      }),
      filter('ratelimit', 'ratelimit.v3.RateLimit', {
        ...{ domain: DOMAIN, timeout: DECISION_TIMEOUT, failure_mode_deny: true },
        enable_x_ratelimit_headers: 'DRAFT_VERSION_03',
        rate_limit_service: {
          transport_api_version: 'V3',
          grpc_service: { envoy_grpc: { cluster_name: 'ratelimit' } },
        },
      }),
    ],
    rateLimits: [{ actions: [{ request_headers: { header_name: KEY_ID, descriptor_key: 'key' } }] }],
    clusters: [
      {
        ...cluster('ratelimit', grpcPort),
        typed_extension_protocol_options: {
          'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
            '@type': `${TYPES}.upstreams.http.v3.HttpProtocolOptions`,
            explicit_http_config: { http2_protocol_options: {} },
          },
        },
      },
    ],
  });
}

/** What a proxy does with a request beside forwarding it: filters before the router, and clusters that these ask. */
interface Duties {
  readonly filters?: readonly object[];
  readonly rateLimits?: readonly object[];
  readonly clusters?: readonly object[];
}

/** Envoy that forwards what comes on a port to the backend. */
export function proxyConfiguration(
  port: number,
  backendPort: number,
  { filters = [], rateLimits = [], clusters = [] }: Duties = {},
): object {
  const route = { match: { prefix: '/' }, route: { cluster: 'backend', rate_limits: rateLimits } };
  const manager = {
    name: 'envoy.filters.network.http_connection_manager',
    typed_config: {
      '@type': `${TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
      stat_prefix: 'clients',
      use_remote_address: true,
      http_filters: [...filters, filter('router', 'router.v3.Router', {})],
      route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route] }] },
    },
  };
  const listener = {
    ...{ name: 'clients', address: address(port), tcp_backlog_size: 4096 },
    filter_chains: [{ filters: [manager] }],
  };
  return {
    static_resources: { listeners: [listener], clusters: [cluster('backend', backendPort), ...clusters] },
  };
}

function address(port: number): object {
  return { socket_address: { address: '127.0.0.1', port_value: port } };
}

function cluster(name: string, port: number): object {
  return {
    ...{ name, type: 'STATIC', connect_timeout: '5s' },
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: address(port) } }] }],
    },
  };
}

function filter(name: string, type: string, config: object): object {
  return {
    name: `envoy.filters.http.${name}`,
    typed_config: { '@type': `${TYPES}.filters.http.${type}`, ...config },
  };
}
