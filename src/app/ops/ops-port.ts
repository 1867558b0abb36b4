import { ListeningSockets } from '../../server/listening-sockets.ts';
import type { Settings } from '../../settings/settings.ts';
import { listenAt } from '../listen.ts';
import { createOpsServer, type OpsSources } from './ops-server.ts';

/** The open ops port. */
export interface OpsPort {
  readonly port: number;
  close(): Promise<void>;
}

/** Opens `OPS_PORT` on `OPS_HOST`. Rejects if it can't be opened. */
export async function openOpsPort(
  sources: OpsSources,
  { opsPort, opsHost }: Pick<Settings, 'opsPort' | 'opsHost'>,
): Promise<OpsPort> {
  const server = createOpsServer(sources);
  const place = { port: opsPort, host: opsHost, portSetting: 'OPS_PORT', hostSetting: 'OPS_HOST' } as const;
  // A probe must not wait for one turn of the event loop for each connection before it.
  const listening = new ListeningSockets(server);
  const { port } = await listenAt(place, (at, host) =>
    listening.listen({ port: at, host, sharesPort: false }),
  );
  return {
    port,
    close: async () => {
      const closed = listening.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
