import type { AddressInfo } from 'node:net';
import type { Settings } from './config.ts';
import { createOpsServer, type OpsSources } from './http/ops-server.ts';

/** The open ops port. */
export interface OpsPort {
  readonly port: number;
  close(): Promise<void>;
}

/** Opens `OPS_PORT`. Rejects when it can't be had. */
export async function openOpsPort(
  sources: OpsSources,
  { opsPort, host }: Pick<Settings, 'opsPort' | 'host'>,
): Promise<OpsPort> {
  const server = createOpsServer(sources);
  const listening = Promise.withResolvers<void>();
  server.once('error', listening.reject);
  server.listen(opsPort, host, listening.resolve);
  await listening.promise;
  server.off('error', listening.reject);
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
}
