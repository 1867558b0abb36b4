import type { Platform } from '../platform/platform.ts';
import { StartFiles } from '../platform/process/start-files.ts';
import type { Settings } from '../settings/settings.ts';
import { openOpsPort } from './ops/ops-port.ts';
import { type Replica, startReplica } from './replica.ts';

/** A running gateway: one process, or several that share its ports. */
export interface Gateway extends Pick<Replica, 'port' | 'adminPort' | 'authorizePort' | 'ready' | 'stop'> {
  readonly opsPort: number;
}

/** Starts a replica with its ops port in this process. Rejects if a port can't be opened. */
export async function startSingleProcess(
  settings: Settings,
  platform: Platform,
  files = new StartFiles(),
): Promise<Gateway> {
  const replica = await startReplica(settings, platform, files);
  const ops = await openOpsPort(replica.ops, settings).catch(async (error: unknown) => {
    await replica.stop();
    throw error;
  });
  const { port, adminPort, authorizePort } = replica;
  const ports = { port, adminPort, opsPort: ops.port, authorizePort };
  platform.log.info(ports, 'listening');
  return {
    ...ports,
    ready: () => replica.ready(),
    stop: async () => {
      const isClean = await replica.stop();
      await ops.close();
      return isClean;
    },
  };
}
