import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../support/free-port.ts';
import { CANDIDATE_CORE, type PinnedProcess, startListening } from './pinned-process.ts';
import type { Programs } from './programs.ts';

/** Counts of the backend since it started, without those that asking for them made. */
interface BackendCounts {
  readonly connections: number;
  readonly requests: number;
}

/** An nginx that responds with 932 bytes, below `/large` 64 kB, and counts what it gets. */
export interface BenchBackend {
  readonly port: number;
  /** Its processes. */
  pids(): readonly number[];
  counts(): Promise<BackendCounts>;
  stop(): Promise<void>;
}

const SMALL_BYTES = 932;
const LARGE_BYTES = 64 * 1024;

/** Starts it in `directory`, on the bench's own cores. */
export async function startBackend(
  programs: Programs,
  cores: string,
  directory: string,
): Promise<BenchBackend> {
  const port = await freePort();
  await mkdir(join(directory, 'large'), { recursive: true });
  await writeFile(join(directory, 'large/items'), 'x'.repeat(LARGE_BYTES));
  const { pids, stop } = await startNginx(programs, {
    directory,
    port,
    cores,
    http: backendHttp(port, directory),
  });
  return { port, pids, counts: counter(port), stop };
}

/** Each question is a new connection and request, which the response has counted already. */
function counter(port: number): () => Promise<BackendCounts> {
  let asked = 0;
  return async () => {
    const response = await fetch(`http://127.0.0.1:${port}/_status`, { headers: { connection: 'close' } });
    const text = await response.text();
    asked += 1;
    const [, accepted, , requests] = /^ (\d+) (\d+) (\d+) $/m.exec(text) ?? [];
    if (accepted === undefined || requests === undefined) throw new Error(`The backend responded:\n${text}`);
    return { connections: Number(accepted) - asked, requests: Number(requests) - asked };
  };
}

interface NginxStart {
  /** For its files. */
  readonly directory: string;
  /** That it will listen on. */
  readonly port: number;
  /** That of the candidates by default. */
  readonly cores?: string;
  /** Lines before all others. */
  readonly modules?: string;
  /** What its `http` block has besides. */
  readonly http: string;
}

/** Starts an nginx with one worker, which writes no log and keeps connections. */
export async function startNginx(
  { nginx, taskset }: Programs,
  { directory, port, cores = String(CANDIDATE_CORE), modules = '', http }: NginxStart,
): Promise<PinnedProcess> {
  await mkdir(directory, { recursive: true });
  const file = join(directory, 'nginx.conf');
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  await writeFile(
    file,
    `${modules}
daemon off;
worker_processes 1;
pid nginx.pid;
${user}
events { worker_connections 4096; }
http {
  ${HTTP}
${http}
}
`,
  );
  return startListening(port, {
    taskset,
    cores,
    command: [nginx, '-p', directory, '-e', 'error.log', '-c', file],
  });
}

const HTTP = `access_log off;
  keepalive_requests 1000000000;
  keepalive_timeout 300s;
  client_body_buffer_size 64k;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;`;

function backendHttp(port: number, directory: string): string {
  const item = '{"id":1234,"name":"a thing","tags":["a","b"]}';
  const text = item.repeat(30).slice(0, SMALL_BYTES);
  return `  sendfile on;
  default_type application/json;
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location = /_status { stub_status; }
    location /large/ { root ${directory}; }
    location / { return 200 '${text}'; }
  }`;
}
