import { execFile } from 'node:child_process';
import { access } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';
import { onPath, requireProgram } from '../../support/debian-package.ts';

const run = promisify(execFile);

/** Paths of the programs that the bench starts. */
export interface Programs {
  readonly nginx: string;
  readonly wrk: string;
  readonly taskset: string;
  /** Undefined: no counts of syscalls and instructions. */
  readonly perf: string | undefined;
}

const LUA_MODULE = '/usr/lib/nginx/modules/ngx_http_lua_module.so';
const LUA_REDIS = '/usr/share/lua/5.1/nginx/redis.lua';

/** Finds the programs, or installs them where that is possible. Throws with what to do where it is not. */
export async function findPrograms(): Promise<Programs> {
  if (process.platform !== 'linux') {
    throw new Error(
      'The bench needs Linux: CPU time is read from /proc, and processes are pinned with taskset.',
    );
  }
  if (availableParallelism() < 2) {
    throw new Error(
      'The bench needs two cores: one for the gateway, one for the load, the backend and the stores.',
    );
  }
  const nginx = await requireProgram('nginx', 'nginx');
  await requireFile(LUA_MODULE, 'libnginx-mod-http-lua', nginx);
  await requireFile(LUA_REDIS, 'lua-nginx-redis', nginx);
  return {
    nginx,
    wrk: await requireProgram('wrk', 'wrk'),
    taskset: await requireProgram('taskset', 'util-linux'),
    perf: await usablePerf(),
  };
}

/** `requireProgram` finds a package by its program; these two have none, so any name that is on no PATH makes it install them. */
async function requireFile(path: string, debianPackage: string, nginx: string): Promise<void> {
  if (await exists(path)) return;
  await requireProgram(`${path} (for ${nginx})`, debianPackage).catch(() => undefined);
  if (await exists(path)) return;
  throw new Error(`The bench needs ${path} (Debian: apt-get install ${debianPackage}).`);
}

async function usablePerf(): Promise<string | undefined> {
  const perf = await onPath('perf');
  if (perf === undefined) return undefined;
  const works = await run(perf, ['stat', '-e', 'raw_syscalls:sys_enter', 'true']).then(
    ({ stderr }) => !stderr.includes('not supported'),
    () => false,
  );
  return works ? perf : undefined;
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
