import type { Platform } from '../platform/platform.ts';
import { StartFiles } from '../platform/process/start-files.ts';
import type { Settings } from '../settings/settings.ts';
import { type Gateway, openGateway } from './ops/ops-port.ts';
import { startReplica } from './replica.ts';

/** Starts a replica with its ops port in this process. Rejects if a port can't be opened. */
export async function startSingleProcess(
  settings: Settings,
  platform: Platform,
  files = new StartFiles(),
): Promise<Gateway> {
  return openGateway(await startReplica(settings, platform, files), settings, platform.log);
}
