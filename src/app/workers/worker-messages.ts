import type { ReadinessReport } from '../../observability/readiness.ts';
import type { MetricsSnapshot } from '../../observability/worker-metrics.ts';

/** A request of the primary process to a worker. The response carries the same number. */
export interface ReportRequest {
  readonly ask: 'report';
  readonly number: number;
}

/** A message from a worker to the primary process. */
export type WorkerMessage =
  | { readonly tell: 'listening'; readonly port: number; readonly adminPort: number | null }
  | {
      readonly tell: 'report';
      readonly number: number;
      readonly readiness: ReadinessReport;
      readonly metrics: MetricsSnapshot;
    };

/** Whether a message from the primary process is a request for a report. */
export function isReportRequest(message: unknown): message is ReportRequest {
  return typeof message === 'object' && message !== null && 'ask' in message && message.ask === 'report';
}

/** Whether a message came from our worker, and not from Node's own cluster protocol. */
export function isWorkerMessage(message: unknown): message is WorkerMessage {
  return typeof message === 'object' && message !== null && 'tell' in message;
}
