import { join } from 'node:path';
import { documentedServer } from '../../authorize/support/documented-gateways.ts';
import { freePort } from '../../support/free-port.ts';
import { startNginx } from './backend.ts';
import type { Candidate } from './candidate.ts';
import type { TollgateCandidate } from './tollgate.ts';
import type { World } from './world.ts';

/** nginx with one worker that asks a replica by `auth_request`, configured as docs/authorize.md shows; both of them are measured. */
export async function startAuthRequest(
  { programs, backend, directory: parent }: Pick<World, 'programs' | 'backend' | 'directory'>,
  replica: TollgateCandidate,
): Promise<Candidate> {
  const directory = join(parent, 'nginx-auth-request');
  const port = await freePort();
  const http = await documentedServer({
    ...{ port, tollgatePort: replica.authorizePort ?? 0, backendPort: backend.port },
  });
  const nginx = await startNginx(programs, { directory, port, http });
  return { ...replica, port, pids: () => [...nginx.pids(), ...replica.pids()], stop: nginx.stop };
}
