import type { Settings } from './config.ts';
import type { TollgateError } from './errors.ts';
import { errorAnswer } from './http/error-answers.ts';
import type { AnsweredRequest } from './http/identified-app.ts';
import { AccessLog } from './observability/access-log.ts';
import { KeyMetrics } from './observability/key-metrics.ts';
import type { Reading } from './observability/metrics.ts';
import { RequestMetrics } from './observability/request-metrics.ts';
import type { BulkLogger } from './platform/logger.ts';
import type { Platform } from './platform/platform.ts';
import type { ExchangeSummary } from './proxy/summary.ts';
import { resultOf } from './service-metrics.ts';

/** Who is told of requests that are over: the metrics, and the access log when there is one. */
export interface RequestObservers {
  readonly metrics: RequestMetrics;
  /** Metrics that exist only when a setting asks for them. */
  readonly readings: readonly Reading[];
  proxied(summary: ExchangeSummary): void;
  refused(error: TollgateError): void;
  managed(request: AnsweredRequest): void;
  /** Writes the log lines that wait. */
  flush(): void;
}

/** What observing needs besides the settings. */
export interface ObserverOptions extends Pick<Platform, 'clock' | 'log'> {
  readonly bulkLogger: () => BulkLogger;
  /** Makes a path fit to be written down. */
  readonly mask: (path: string) => string;
}

/** Puts together what the settings ask for. What is off is not there at all. */
export function observeRequests(
  { accessLog: rate, metricsPerKey }: Pick<Settings, 'accessLog' | 'metricsPerKey'>,
  { clock, log, bulkLogger, mask }: ObserverOptions,
): RequestObservers {
  const metrics = new RequestMetrics();
  const keys = metricsPerKey === 0 ? undefined : new KeyMetrics(metricsPerKey, () => clock.monotonicMs());
  const bulk = rate > 0 && log.isLevelEnabled('info') ? bulkLogger() : undefined;
  const accessLog = bulk && new AccessLog({ rate, lines: bulk.lines, mask });
  return {
    metrics,
    readings: keys === undefined ? [] : [keys.reading()],
    proxied(summary) {
      const result = resultOf(summary.outcome);
      metrics.observe(result, summary);
      if (keys !== undefined && summary.keyId !== undefined) keys.observe(summary.keyId, result);
      accessLog?.proxied(summary);
    },
    refused(error) {
      const { status } = errorAnswer(error);
      metrics.refused(status);
      accessLog?.refused(status, error.code);
    },
    managed(request) {
      accessLog?.managed(request);
    },
    flush() {
      bulk?.flush();
    },
  };
}
