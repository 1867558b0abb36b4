// The room `platform`: what every room needs of the machine and the language, such as time, randomness, the log, tasks, queues and texts.
// In: nothing of the gateway.
// Out: small parts without knowledge of keys, requests or stores.

import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';
import type { Random } from './random.ts';

/** The parts of the outside world that every part of the gateway needs. */
export interface Platform {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}
