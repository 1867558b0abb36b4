import type { Clock } from '../../platform/clock.ts';
import type { Platform } from '../../platform/platform.ts';
import type { StartFiles } from '../../platform/process/start-files.ts';
import type { Settings } from '../../settings/settings.ts';
import { type Replica, startReplica } from '../replica.ts';
import { isReportRequest, type ReportRequest, sendToPrimary } from './worker-messages.ts';

/** A replica that shares its ports with other processes and reports to the primary process. */
export interface StartedWorker extends Pick<Replica, 'stop'> {
  /** Tells the primary process that this one listens. From then on it may get signals. */
  announce(): void;
}

/** Starts a worker. It stops by itself when the primary process is gone. Rejects if a port can't be opened. */
export async function startWorker(
  settings: Settings,
  platform: Platform,
  files: StartFiles,
): Promise<StartedWorker> {
  const replica = await startReplica(settings, platform, files);
  process.on('message', (message) => {
    if (isReportRequest(message)) void report(replica, message, platform.clock);
  });
  const { port, adminPort, authorizePort } = replica;
  return {
    stop: () => replica.stop(),
    announce: () => sendToPrimary({ type: 'listening', port, adminPort, authorizePort }),
  };
}

async function report(
  { ops }: Replica,
  { number, scrapeUntilMs }: ReportRequest,
  clock: Clock,
): Promise<void> {
  // The request may have waited for a stall of this process, which the next scrape is to show.
  const isScraped = scrapeUntilMs !== null && clock.nowMs() < scrapeUntilMs;
  const [readiness, snapshot] = await Promise.all([
    ops.readiness(),
    ops.snapshot(isScraped ? 'scrape' : 'keep'),
  ]);
  sendToPrimary({ type: 'report', number, readiness, snapshot });
}
