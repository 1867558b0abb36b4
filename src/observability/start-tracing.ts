import type { RequestTracing, TracingOptions } from './tracing.ts';

/**
 * Starts OpenTelemetry, whose packages are optional and loaded only here. Rejects when they are not installed: traces that an operator
 * asked for do not go missing in silence.
 */
export async function startTracing(options: TracingOptions): Promise<RequestTracing> {
  const { OpenTelemetryTracing } = await import('./open-telemetry.ts').catch((cause: unknown) => {
    throw new Error(
      'OTEL_… variables switch traces on, but the packages for them are not installed: npm ci --include=optional.',
      { cause },
    );
  });
  return OpenTelemetryTracing.start(options);
}
