import { readFileSync } from 'node:fs';
import { CommandFault } from '../command-fault.ts';

const NAMES = [
  'cpuMicrosecondsPerRequest',
  'redisMicrosecondsPerRequest',
  'redisCommandsPerSecondIdlePerReplica',
  'residentBytesIdle',
  'residentBytesPerCachedKey',
  'redisBytesPerActiveKeyWindow',
  'postgresBytesPerKey',
  'postgresBytesPerUsageRow',
  'postgresConnectionsPerReplica',
] as const;

/** What one unit of work takes, as it was measured. Each name has its unit. */
export type ScaleConstants = Readonly<Record<(typeof NAMES)[number], number>>;

/** The constants of `docs/scale.json`, which the package has too. Throws a `CommandFault` for one that is missing or no positive number. */
export function readScaleConstants(): ScaleConstants {
  const text = readFileSync(new URL('../../../docs/scale.json', import.meta.url), 'utf8');
  const { constants } = JSON.parse(text) as { readonly constants: Readonly<Record<string, unknown>> };
  const entries = NAMES.map((name) => {
    const value = constants[name];
    if (typeof value !== 'number' || !Number.isFinite(value) || value <= 0)
      throw new CommandFault('fault', `docs/scale.json has no ${name}.`);
    return [name, value] as const;
  });
  return Object.fromEntries(entries) as ScaleConstants;
}
