import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';
import type { Random } from './random.ts';

/** The parts of the outside world that every part of the gateway needs. */
export interface Platform {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}
