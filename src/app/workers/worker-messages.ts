import type { ReadinessReport } from '../../observability/readiness.ts';
import type { WorkerSnapshot } from '../../observability/worker-metrics.ts';
import { type FileContents, StartFiles } from '../../platform/process/start-files.ts';
import type { Replica } from '../replica.ts';

/** The response to a `files-request`: what the primary process has read at the start of the gateway. */
export interface FilesMessage {
  readonly type: 'files';
  readonly contents: FileContents;
  /** Whether a worker of this gateway has been ready: then `CONFIG_FILE` was applied. */
  readonly isConfigured: boolean;
}

/** A request from the primary process to a worker. The response carries the same number. */
export interface ReportRequest {
  readonly type: 'report-request';
  readonly number: number;
  /** Until when the metrics of the report are shown to a scrape; null if they are only kept. Milliseconds since 1970. */
  readonly scrapeUntilMs: number | null;
}

/** A message from a worker to the primary process. */
export type WorkerMessage =
  | { readonly type: 'files-request' }
  | ({ readonly type: 'listening' } & Pick<Replica, 'port' | 'adminPort' | 'authorizePort'>)
  | {
      readonly type: 'report';
      readonly number: number;
      readonly readiness: ReadinessReport;
      readonly snapshot: WorkerSnapshot;
    };

/** What a worker gets from the primary process. */
export interface WorkerStart extends Pick<FilesMessage, 'isConfigured'> {
  readonly files: StartFiles;
}

/** Resolves with the files of the primary process, which a worker requests. Without that process Node ends the worker. */
export function filesOfPrimary(): Promise<WorkerStart> {
  return new Promise((resolve) => {
    const take = (message: unknown): void => {
      // A request for a report may come first.
      if (!isFiles(message)) return;
      process.off('message', take);
      resolve({ files: new StartFiles(message.contents), isConfigured: message.isConfigured });
    };
    process.on('message', take);
    sendToPrimary({ type: 'files-request' });
  });
}

/** Sends a message unless the primary process is gone: then this process is about to stop. */
export function sendToPrimary(message: WorkerMessage): void {
  // It may be gone although this process has not noticed it yet: without a callback the error would end this process at once.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

function isFiles(message: unknown): message is FilesMessage {
  return typeOf(message) === 'files';
}

/** Whether a message from the primary process is a request for a report. */
export function isReportRequest(message: unknown): message is ReportRequest {
  return typeOf(message) === 'report-request';
}

/** Whether a message came from our worker, and not from Node's own cluster protocol. */
export function isWorkerMessage(message: unknown): message is WorkerMessage {
  const type = typeOf(message);
  return type === 'files-request' || type === 'listening' || type === 'report';
}

function typeOf(message: unknown): unknown {
  return typeof message === 'object' && message !== null && 'type' in message ? message.type : undefined;
}
