import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { freePort } from '../../support/free-port.ts';
import { startNginx } from './backend.ts';
import { type BenchKey, type Candidate, keysFile, WINDOW_MS } from './candidate.ts';
import { CANDIDATE_CORE, startListening } from './pinned-process.ts';
import type { Programs } from './programs.ts';

/** What the yardsticks are put between. */
export interface YardstickWorld {
  readonly programs: Programs;
  readonly backendPort: number;
  readonly redisPort: number;
  readonly keys: readonly BenchKey[];
  /** For their files. */
  readonly directory: string;
}

const SOURCES = resolve(import.meta.dirname, '../yardsticks');
/** What they ask of Redis; it must know the script already. */
export const DECIDE_SCRIPT = readFileSync(join(SOURCES, 'decide.lua'), 'utf8');
const DECIDE_SHA = createHash('sha1').update(DECIDE_SCRIPT).digest('hex');

/** nginx with one worker, as OpenResty gateways are built. */
export async function startNginxLua(world: YardstickWorld): Promise<Candidate> {
  const port = await freePort();
  const keys = join(world.directory, 'nginx-lua-keys');
  await writeFile(keys, keysFile(world.keys));
  const { pids, stop } = await startNginx(world.programs, {
    ...{ directory: join(world.directory, 'nginx-lua'), port, modules: LUA_MODULES },
    http: luaHttp(port, keys, world),
  });
  const counts: Candidate['counts'] = { redisDatabase: 0, countKey: (id) => `bench-nginx:${id}` };
  return { name: 'nginx-lua', port, pids, counts, stop };
}

/** Express and http-proxy-middleware as they come, run by the same Node. */
export async function startExpress(world: YardstickWorld): Promise<Candidate> {
  const port = await freePort();
  const keys = join(world.directory, 'express-keys');
  await writeFile(keys, keysFile(world.keys));
  const source = join(SOURCES, 'express/gateway.ts');
  const ports = [port, world.backendPort, world.redisPort].map(String);
  const start = () =>
    startListening(port, {
      taskset: world.programs.taskset,
      cores: String(CANDIDATE_CORE),
      command: [process.execPath, source, ...ports, keys, join(SOURCES, 'decide.lua'), String(WINDOW_MS)],
      environment: { NODE_ENV: 'production' },
    });
  let child = await start();
  return {
    name: 'express',
    port,
    pids: () => child.pids(),
    counts: { redisDatabase: 0, countKey: (id) => `bench-express:${id}` },
    restart: async () => {
      await child.stop();
      child = await start();
    },
    stop: () => child.stop(),
  };
}

const LUA_MODULES = `load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;`;

function luaHttp(port: number, keys: string, { backendPort, redisPort }: YardstickWorld): string {
  const script = `'${keys}', '127.0.0.1', ${redisPort}, '${DECIDE_SHA}', ${WINDOW_MS}`;
  return `  lua_package_path '${SOURCES}/nginx-lua/?.lua;;';
  init_by_lua_block { require('gateway').configure(${script}) }
${forwarding(port, backendPort, "access_by_lua_block { require('gateway').access() }")}`;
}

/** In the `http` block of an nginx: what comes on a port goes to the backend, once `access` lets it through. */
export function forwarding(port: number, backendPort: number, access = ''): string {
  return `  upstream backend { server 127.0.0.1:${backendPort}; keepalive 256; keepalive_requests 1000000000; keepalive_timeout 300s; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      ${access}
      proxy_pass http://backend;
      proxy_http_version 1.1;
      proxy_set_header Connection '';
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_buffers 16 8k;
    }
  }
`;
}
