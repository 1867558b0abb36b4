import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { documentedServer } from '../../authorize/support/documented-gateways.ts';
import { freePort } from '../../support/free-port.ts';
import { NGINX_HTTP, nginxBasics } from './backend.ts';
import type { Candidate } from './candidate.ts';
import { CANDIDATE_CORE, startPinned, untilListening } from './pinned-process.ts';
import type { TollgateCandidate } from './tollgate.ts';
import type { World } from './world.ts';

/** nginx with one worker that asks a replica by `auth_request`, configured as docs/authorize.md shows; both of them are measured. */
export async function startAuthRequest(
  { programs, backend, directory: parent }: Pick<World, 'programs' | 'backend' | 'directory'>,
  replica: TollgateCandidate,
): Promise<Candidate> {
  const directory = join(parent, 'nginx-auth-request');
  const port = await freePort();
  await mkdir(directory, { recursive: true });
  const server = await documentedServer({
    ...{ port, tollgatePort: replica.authorizePort ?? 0, backendPort: backend.port },
  });
  const file = join(directory, 'nginx.conf');
  await writeFile(file, `${nginxBasics()}\nhttp {\n  ${NGINX_HTTP}\n${server}\n}\n`);
  const nginx = startPinned({
    taskset: programs.taskset,
    cores: String(CANDIDATE_CORE),
    command: [programs.nginx, '-p', directory, '-e', 'error.log', '-c', file],
  });
  await untilListening(port, nginx);
  return { ...replica, port, pids: () => [...nginx.pids(), ...replica.pids()], stop: nginx.stop };
}
