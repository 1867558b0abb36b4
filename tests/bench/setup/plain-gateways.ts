import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { findEnvoy } from '../../authorize/support/envoy.ts';
import { requireProgram } from '../../support/debian-package.ts';
import { freePort } from '../../support/free-port.ts';
import { startNginx } from './backend.ts';
import { type Candidate, type CandidateName, keysFile } from './candidate.ts';
import { proxyCommand, proxyConfiguration } from './envoy.ts';
import { CANDIDATE_CORE, type PinnedCommand, startListening } from './pinned-process.ts';
import { forwarding, type YardstickWorld } from './yardsticks.ts';

/** Programs that do less than a gateway with exact shared limits: what forwarding costs by itself. Each is started by a call. */
export function plainGateways(world: YardstickWorld): readonly (() => Promise<Candidate>)[] {
  return [
    () => startRelay(world, 'undici'),
    () => startPlainNginx(world),
    () => startHaproxy(world),
    () => startEnvoy(world),
  ];
}

/** A relay of Node's own server and the given client. */
export async function startRelay(
  world: Pick<YardstickWorld, 'programs' | 'backendPort'>,
  client: 'node:http' | 'undici',
): Promise<Candidate> {
  const port = await freePort();
  const source = resolve(import.meta.dirname, '../yardsticks/relay/relay.ts');
  const ports = [port, world.backendPort].map(String);
  const command = [process.execPath, '--v8-pool-size=1', source, ...ports, client];
  return start(world, 'relay', { port, command, environment: { NODE_ENV: 'production' } });
}

async function startPlainNginx(world: YardstickWorld): Promise<Candidate> {
  const [port, directory] = await place(world, 'nginx-plain');
  const { pids, stop } = await startNginx(world.programs, {
    ...{ directory, port, http: forwarding(port, world.backendPort) },
  });
  return { name: 'nginx-plain', port, pids, stop };
}

/** With one thread. Its keys are a file, and its counts a stick table of this one process, for a day. */
async function startHaproxy(world: YardstickWorld): Promise<Candidate> {
  const [port, directory] = await place(world, 'haproxy');
  const limits = join(directory, 'limits');
  await writeFile(limits, keysFile(world.keys).replaceAll(/^(\S+) \S+ /gm, '$1 '));
  const file = join(directory, 'haproxy.cfg');
  await writeFile(
    file,
    `global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout connect 5s
  timeout client 300s
  timeout server 300s
frontend clients
  bind 127.0.0.1:${port} backlog 4096
  stick-table type string len 64 size 100k expire 1d store http_req_cnt
  http-request set-var(txn.secret) req.hdr(authorization),word(2,' ')
  http-request set-var(txn.limit) var(txn.secret),map_str_int(${limits})
  http-request deny deny_status 401 unless { var(txn.limit) -m found }
  http-request track-sc0 var(txn.secret)
  http-request deny deny_status 429 if { sc_http_req_cnt(0),sub(txn.limit) gt 0 }
  http-request set-header x-api-key %[var(txn.secret)]
  default_backend backend
backend backend
  http-reuse always
  server one 127.0.0.1:${world.backendPort}
`,
  );
  const command = [await requireProgram('haproxy', 'haproxy'), '-db', '-f', file];
  return start(world, 'haproxy', { port, command });
}

/** With one worker. */
async function startEnvoy(world: YardstickWorld): Promise<Candidate> {
  const [port, directory] = await place(world, 'envoy-plain');
  const file = join(directory, 'envoy.json');
  await writeFile(file, JSON.stringify(proxyConfiguration(port, world.backendPort)));
  const command = proxyCommand(await findEnvoy(), file);
  return start(world, 'envoy-plain', { port, command });
}

async function place({ directory }: YardstickWorld, name: CandidateName): Promise<[number, string]> {
  const own = join(directory, name);
  await mkdir(own, { recursive: true });
  return [await freePort(), own];
}

interface Started extends Pick<PinnedCommand, 'command' | 'environment'> {
  /** That it will listen on. */
  readonly port: number;
}

async function start(
  { programs }: Pick<YardstickWorld, 'programs'>,
  name: CandidateName,
  { port, ...started }: Started,
): Promise<Candidate> {
  const pinned = { taskset: programs.taskset, cores: String(CANDIDATE_CORE) };
  const { pids, stop } = await startListening(port, { ...pinned, ...started });
  return { name, port, pids, stop };
}
