import type { Spread } from '../measure/statistics.ts';
import { decimal, factor } from '../report/table.ts';
import type { ScaleWorld } from './scale-world.ts';

/** What the sizing page calculates with, each with its unit. */
export interface ScaleConstants {
  readonly cpuMicrosecondsPerRequest: number;
  readonly redisMicrosecondsPerRequest: number;
  readonly redisCommandsPerSecondIdlePerReplica: number;
  readonly residentBytesIdle: number;
  readonly residentBytesPerCachedKey: number;
  readonly redisBytesPerActiveKeyWindow: number;
  /** With its indexes, its totals and the entry of its import in the audit log. */
  readonly postgresBytesPerKey: number;
  /** Of an hour of a key, with its indexes. */
  readonly postgresBytesPerUsageRow: number;
  readonly postgresConnectionsPerReplica: number;
}

/** A budget and what was measured. */
export interface Verdict {
  readonly budget: string;
  readonly measured: string;
  /** Undefined: the A/A pair is too far apart to tell. */
  readonly holds: boolean | undefined;
}

/** A line chart: one value of each line for each x. */
export interface Plot {
  readonly name: string;
  readonly title: string;
  readonly xName: string;
  readonly xs: readonly (string | number)[];
  readonly lines: Readonly<Record<string, readonly number[]>>;
}

/** What a row gave. */
export interface RowResult {
  readonly heads: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Of the A/A pair; undefined where a row compares no CPU time. */
  readonly spread?: number;
  readonly verdicts: readonly Verdict[];
  readonly plots?: readonly Plot[];
  /** Sentences below the table. */
  readonly notes?: readonly string[];
  readonly constants?: Partial<ScaleConstants>;
}

/** A question that the bench has an answer to. */
export interface ScaleRow {
  readonly name: string;
  readonly title: string;
  readonly measure: (world: ScaleWorld) => Promise<RowResult>;
}

/** From such a spread of the A/A pair on the machine was too busy to say anything. */
const MOST_SPREAD = 0.25;

/** The verdict on a ratio of CPU times. */
export function verdictOnRatio(what: string, ratio: Spread, most: number, spread: number): Verdict {
  const { median } = ratio;
  const isResolved = spread < MOST_SPREAD && (median <= most || median - most > spread * most);
  return {
    budget: `${what} ≤ ${most} ×`,
    measured: factor(ratio),
    holds: isResolved ? median <= most : undefined,
  };
}

/** `1000000` as `1 000 000`. */
export function grouped(value: number): string {
  return Math.round(value).toLocaleString('en').replaceAll(',', ' ');
}

/** Bytes for a table. */
export function megabytes(bytes: number): string {
  return decimal(bytes / 1e6, 0);
}
