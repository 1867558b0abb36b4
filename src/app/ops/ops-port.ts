import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from '../../platform/logger.ts';
import { ListeningSockets } from '../../server/listening-sockets.ts';
import type { Settings } from '../../settings/settings.ts';
import { listenAt } from '../listen.ts';
import type { Replica } from '../replica.ts';
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

/** One replica, or several that share its ports, without the ops port. */
interface Started extends Pick<Replica, 'port' | 'adminPort' | 'authorizePort' | 'stop'> {
  readonly ops: OpsSources;
}

/** A running gateway. */
export interface Gateway extends Omit<Started, 'ops'> {
  readonly opsPort: number;
  /** Resolves when every component is ready. */
  ready(): Promise<void>;
}

/** Opens the ops port of what has started, and logs that it listens. Stops that and rejects if the port can't be opened. */
export async function openGateway(started: Started, settings: Settings, log: Logger): Promise<Gateway> {
  const { port, adminPort, authorizePort, ops } = started;
  const opsPort = await openOpsPort(ops, settings).catch(async (error: unknown) => {
    await started.stop();
    throw error;
  });
  const ports = { port, adminPort, opsPort: opsPort.port, authorizePort };
  log.info({ ...ports, ...(settings.workers > 1 && { workers: settings.workers }) }, 'listening');
  return {
    ...ports,
    ready: async () => {
      while (!(await ops.readiness()).ready) await pause(20);
    },
    stop: async () => {
      const isClean = await started.stop();
      await opsPort.close();
      return isClean;
    },
  };
}
