import { definedFields } from '../platform/defined-fields.ts';
import { type Environment, orFault } from './read-setting.ts';
import { count, oneOf, type Parse, part, text } from './setting-parsers.ts';

const SAMPLER = oneOf(
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
);

const ENDPOINT = text(
  (value) => /^https?:$/.test(URL.parse(value)?.protocol ?? ''),
  'a URL like http://collector:4318',
);

/** Decides which traces are kept. `parentbased_` is read separately. */
type RootSampler = 'always_on' | 'always_off' | 'traceidratio';

/**
 * Null when tracing is off: no variable names an exporter or an endpoint, or one turns tracing off. Faults are added as sentences that
 * never repeat a value.
 */
export function readTracing(environment: Environment, faults: string[]) {
  const given = (variable: string): string | undefined => environment[variable]?.trim() || undefined;
  function read<T>(parse: Parse<T>, ...variables: readonly string[]): T | undefined {
    const variable = variables.find((each) => given(each) !== undefined);
    return variable === undefined ? undefined : orFault(variable, () => parse(given(variable) ?? ''), faults);
  }

  const isOn =
    given('OTEL_SDK_DISABLED')?.toLowerCase() !== 'true' &&
    given('OTEL_TRACES_EXPORTER') !== 'none' &&
    ['OTEL_TRACES_EXPORTER', 'OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'].some(given);
  if (!isOn) return null;
  read(oneOf('otlp', 'none'), 'OTEL_TRACES_EXPORTER');
  // The exporter reads them itself.
  read(ENDPOINT, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT');
  const protocol = read(
    oneOf('http/protobuf', 'http/json'),
    'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL',
    'OTEL_EXPORTER_OTLP_PROTOCOL',
  );
  const sampler = read(SAMPLER, 'OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on';
  const chosenRatio = read(part('a number from 0 to 1'), 'OTEL_TRACES_SAMPLER_ARG');
  return {
    protocol: protocol ?? 'http/protobuf',
    // `SAMPLER` has no others.
    sampler: sampler.replace('parentbased_', '') as RootSampler,
    isParentBased: sampler.startsWith('parentbased_'),
    ratio: chosenRatio ?? 1,
    batches: definedFields({
      scheduledDelayMillis: read(count(1, 3_600_000), 'OTEL_BSP_SCHEDULE_DELAY'),
      exportTimeoutMillis: read(count(1, 3_600_000), 'OTEL_BSP_EXPORT_TIMEOUT'),
      maxQueueSize: read(count(1, 1_000_000), 'OTEL_BSP_MAX_QUEUE_SIZE'),
      maxExportBatchSize: read(count(1, 1_000_000), 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE'),
    }),
  };
}
