import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import express from 'express';
import { requireProgram } from '../../support/debian-package.ts';
import { endChild, hasEnded } from '../../support/end-child.ts';
import { listenOnLoopback } from '../../support/listen-on-loopback.ts';
import { until } from '../../support/until.ts';

/** A backend with the routes of the table of spellings. */
export interface PathReadingBackend {
  /** The resource that it takes a request for; undefined if it finds none. */
  resourceOf(method: string, target: string): Promise<string | undefined>;
  stop(): Promise<void>;
}

/** The header in which a backend names the resource. */
const RESOURCE = 'x-resource';

/** Express as it is by default. */
export async function startExpress(): Promise<PathReadingBackend> {
  const app = express();
  const is = (name: string) => (_req: express.Request, res: express.Response) =>
    void res.set(RESOURCE, name).end();
  app.post(['/v1/search', '/v1/search/*rest'], is('search'));
  app.post('/v1/batch', is('batch'));
  app.get('/v1/items/:id', is('item'));
  const server = createServer(app);
  const port = await listenOnLoopback(server);
  return {
    resourceOf: (method, target) => ask({ host: '127.0.0.1', port }, method, target),
    stop: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** nginx with locations, as it has them for its own content or for a backend. */
export async function startNginxLocations(): Promise<PathReadingBackend> {
  const program = await requireProgram('nginx', 'nginx');
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-locations-'));
  const socketPath = join(directory, 'nginx.sock');
  const file = join(directory, 'nginx.conf');
  await writeFile(file, CONFIGURATION(socketPath));
  const child = spawn(program, ['-p', directory, '-e', 'stderr', '-c', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let written = '';
  child.stderr.on('data', (bytes) => (written += bytes));
  child.on('error', () => {});
  const stop = async () => {
    await endChild(child);
    await rm(directory, { recursive: true, force: true });
  };
  const isUp = () => ask({ socketPath }, 'GET', '/').then(...([() => true, () => false] as const));
  await until(async () => hasEnded(child) || (await isUp()));
  if (hasEnded(child)) {
    await stop();
    throw new Error(`nginx ended at once:\n${written}`);
  }
  return { resourceOf: (method, target) => ask({ socketPath }, method, target), stop };
}

const CONFIGURATION = (socketPath: string) => `daemon off;
master_process off;
pid nginx.pid;
error_log stderr crit;
events { worker_connections 64; }
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((what) => `${what}_temp_path ${what};`).join('\n  ')}
  server {
    listen unix:${socketPath};
    location ~ ^/v1/search(/|$) { add_header ${RESOURCE} search; return 200; }
    location = /v1/batch { add_header ${RESOURCE} batch; return 200; }
    location ~ ^/v1/items/[^/]+$ { add_header ${RESOURCE} item; return 200; }
    location / { return 404; }
  }
}
`;

type Address = { readonly socketPath: string } | { readonly host: string; readonly port: number };

function ask(address: Address, method: string, path: string): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { host: 'api.example.com', 'content-length': '0', connection: 'close' };
    request({ ...address, method, path, headers }, (res) => {
      res.resume();
      const resource = res.headers[RESOURCE];
      resolve(typeof resource === 'string' ? resource : undefined);
    })
      .on('error', reject)
      .end();
  });
}
