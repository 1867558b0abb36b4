import type { Platform } from '../../platform/platform.ts';
import type { Settings } from '../../settings/settings.ts';
import { type Replica, startReplica } from '../replica.ts';
import { isReportRequest, type WorkerMessage } from './worker-messages.ts';

/**
 * Starts a replica that shares its ports with other processes and reports to the primary process. It stops by itself when the primary
 * process is gone. Rejects if a port can't be opened.
 */
export async function startWorker(settings: Settings, platform: Platform): Promise<Pick<Replica, 'stop'>> {
  const replica = await startReplica(settings, platform);
  process.on('message', (message) => {
    if (isReportRequest(message)) void report(replica, message.number);
  });
  const { port, adminPort, authorizePort } = replica;
  send({ type: 'listening', port, adminPort, authorizePort });
  return replica;
}

async function report(replica: Replica, number: number): Promise<void> {
  const [readiness, metrics] = await Promise.all([replica.ops.readiness(), replica.ops.snapshot()]);
  send({ type: 'report', number, readiness, metrics });
}

function send(message: WorkerMessage): void {
  // Without a channel the primary process is gone, and this process is about to stop.
  if (process.connected) process.send?.(message);
}
