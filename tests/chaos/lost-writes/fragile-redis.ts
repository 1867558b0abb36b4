import type { SeededRandom } from '../seeded-random.ts';

/** Redis in a form in which it loses writes that it has acknowledged. */
export interface FragileRedis {
  readonly name: string;
  /** What tells the replica of this number where Redis is. */
  settingsOf(replica: number): Readonly<Record<string, string>>;
  /** Each loses something; it resolves when a healthy Redis is there again, with a standby. */
  readonly faults: readonly RedisFault[];
  stop(): Promise<void>;
}

/** One way to lose writes. */
interface RedisFault {
  readonly name: string;
  run(random: SeededRandom): Promise<void>;
}
