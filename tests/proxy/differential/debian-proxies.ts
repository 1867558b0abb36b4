import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { requireProgram } from '../../support/debian-package.ts';
import { endChild, hasEnded } from '../../support/end-child.ts';
import { until } from '../../support/until.ts';
import { RawPeer } from '../support/raw-peer.ts';
import type { Contender, Lane } from './contender.ts';
import { RecordingBackend } from './recording-backend.ts';

const run = promisify(execFile);

/** A program's part in the comparison: how it is started, and its configuration. */
interface Recipe {
  readonly program: string;
  /** `-v` prints it, on whichever output. */
  readonly version: RegExp;
  configuration(lanes: readonly Lane[]): string;
  arguments(directory: string, file: string): readonly string[];
}

/** nginx reads a whole body before it asks its backend: a body that turns out malformed reaches no backend. */
const NGINX: Recipe = {
  program: 'nginx',
  version: /nginx\/(\S+)/,
  arguments: (directory, file) => ['-p', directory, '-e', 'stderr', '-c', file],
  configuration: (lanes) => `daemon off;
master_process off;
pid nginx.pid;
error_log stderr crit;
events { worker_connections 512; }
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((what) => `${what}_temp_path ${what};`).join('\n  ')}
  # As long as ours may be: sizes are not what is compared.
  large_client_header_buffers 4 16k;
  client_max_body_size 0;
  client_header_timeout 5s;
  client_body_timeout 5s;
  keepalive_timeout 5s;
  proxy_http_version 1.1;
${lanes.map(({ address, backend }) => `  server { listen unix:${address}; location / { proxy_pass http://127.0.0.1:${backend.port}; } }`).join('\n')}
}
`,
};

const HAPROXY: Recipe = {
  program: 'haproxy',
  version: /version (\S+)/,
  arguments: (_directory, file) => ['-db', '-f', file],
  configuration: (lanes) => `global
  # Sizes are not what is compared.
  tune.bufsize 65536
defaults
  mode http
  timeout connect 5s
  timeout server 6s
  timeout client 5s
  timeout http-request 5s
  timeout http-keep-alive 5s
${lanes
  .map(
    ({ address, backend }, i) => `frontend in${i}
  bind ${address}
  default_backend out${i}
backend out${i}
  server recording 127.0.0.1:${backend.port}
`,
  )
  .join('')}`,
};

/** nginx as a plain reverse proxy. Undefined where it is missing and can't be installed. */
export function startNginx(lanes: number): Promise<Contender | undefined> {
  return startProxy(NGINX, lanes);
}

/** HAProxy as a plain reverse proxy. Undefined where it is missing and can't be installed. */
export function startHaproxy(lanes: number): Promise<Contender | undefined> {
  return startProxy(HAPROXY, lanes);
}

async function startProxy(recipe: Recipe, count: number): Promise<Contender | undefined> {
  const program = await requireProgram(recipe.program, recipe.program).catch(() => undefined);
  if (program === undefined) return undefined;
  const { stdout, stderr } = await run(program, ['-v']);
  const directory = await mkdtemp(join(tmpdir(), `tollgate-${recipe.program}-`));
  // Sockets in a new directory: HAProxy would share a TCP port with any other program that lets it, and mix their connections.
  const lanes = await Promise.all(
    Array.from({ length: count }, async (_, i): Promise<Lane> => {
      const backend = await RecordingBackend.start();
      return { address: join(directory, `${i}.sock`), backend, settled: async () => {} };
    }),
  );
  const file = join(directory, 'proxy.conf');
  await writeFile(file, recipe.configuration(lanes));
  const child = spawn(program, recipe.arguments(directory, file), { stdio: ['ignore', 'ignore', 'pipe'] });
  const onExit = () => child.kill('SIGKILL');
  process.once('exit', onExit);
  let written = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    written += text;
  });
  const stop = async (): Promise<void> => {
    await endChild(child);
    process.removeListener('exit', onExit);
    await rm(directory, { recursive: true, force: true });
    await Promise.all(lanes.map(({ backend }) => backend.stop()));
  };
  try {
    for (const { address } of lanes) {
      await until(async () => hasEnded(child) || (await listens(address)));
    }
    if (hasEnded(child)) throw new Error(`${recipe.program} ended at once:\n${written}`);
  } catch (error) {
    await stop();
    throw error;
  }
  return { version: recipe.version.exec(stdout + stderr)?.[1] ?? 'unknown', lanes, stop };
}

async function listens(address: Lane['address']): Promise<boolean> {
  try {
    (await RawPeer.connect(address)).destroy();
    return true;
  } catch {
    return false;
  }
}
