import type { AddressInfo } from 'node:net';
import type { Settings } from '../../config/settings.ts';
import { listenAt } from '../listen.ts';
import { createOpsServer, type OpsSources } from './ops-server.ts';

/** The open ops port. */
export interface OpsPort {
  readonly port: number;
  close(): Promise<void>;
}

/** Opens `OPS_PORT` on `OPS_HOST`. Rejects when it can't be had. */
export async function openOpsPort(
  sources: OpsSources,
  { opsPort, opsHost }: Pick<Settings, 'opsPort' | 'opsHost'>,
): Promise<OpsPort> {
  const server = createOpsServer(sources);
  const place = { port: opsPort, host: opsHost, portSetting: 'OPS_PORT', hostSetting: 'OPS_HOST' } as const;
  const { port } = await listenAt(place, async (at, host) => {
    const listening = Promise.withResolvers<void>();
    server.once('error', listening.reject);
    server.listen(at, host, listening.resolve);
    await listening.promise;
    server.off('error', listening.reject);
    return server.address() as AddressInfo;
  });
  return {
    port,
    close: async () => {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
}
