import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';
import type { Random } from './random.ts';

/** What every part needs of the world outside. */
export interface Platform {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}
