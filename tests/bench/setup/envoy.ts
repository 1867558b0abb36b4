import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../support/free-port.ts';
import { type BenchKey, type Candidate, WINDOW_MS } from './candidate.ts';
import { CANDIDATE_CORE, startPinned, untilListening } from './pinned-process.ts';
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
  const service = startPinned({
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
  await untilListening(grpcPort, service);
  const proxy = startPinned({
    ...pinned,
    command: [
      ...[envoy, '-c', join(directory, 'envoy.json'), '--concurrency', '1'],
      ...['--disable-hot-restart', '--log-level', 'error'],
    ],
  });
  await untilListening(port, proxy).catch(async (error: unknown) => {
    await service.stop();
    throw error;
  });
  return {
    name: 'envoy-ratelimit',
    port,
    pids: () => [...proxy.pids(), ...service.pids()],
    redisDatabase: 0,
    countKey: (id) => `${DOMAIN}_key_${id}_${Math.floor(Date.now() / WINDOW_MS) * (WINDOW_MS / 1000)}`,
    stop: async () => {
      await proxy.stop();
      await service.stop();
    },
  };
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
function configuration(
  { keys, backendPort }: YardstickWorld,
  port: number,
  grpcPort: number,
): Record<string, unknown> {
  const address = (number: number) => ({ socket_address: { address: '127.0.0.1', port_value: number } });
  const cluster = (name: string, number: number) => ({
    ...{ name, type: 'STATIC', connect_timeout: '5s' },
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: address(number) } }] }],
    },
  });
  const filter = (name: string, type: string, config: object) => ({
    name: `envoy.filters.http.${name}`,
    typed_config: { '@type': `${TYPES}.filters.http.${type}`, ...config },
  });
  const filters = [
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
    filter('router', 'router.v3.Router', {}),
  ];
  const route = {
    match: { prefix: '/' },
    route: {
      cluster: 'backend',
      rate_limits: [{ actions: [{ request_headers: { header_name: KEY_ID, descriptor_key: 'key' } }] }],
    },
  };
  return {
    static_resources: {
      listeners: [
        {
          name: 'clients',
          address: address(port),
          tcp_backlog_size: 4096,
          filter_chains: [
            {
              filters: [
                {
                  name: 'envoy.filters.network.http_connection_manager',
                  typed_config: {
                    '@type': `${TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
                    stat_prefix: 'clients',
                    use_remote_address: true,
                    http_filters: filters,
                    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route] }] },
                  },
                },
              ],
            },
          ],
        },
      ],
      clusters: [
        cluster('backend', backendPort),
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
    },
  };
}
