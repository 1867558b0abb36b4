import type { NoPlace } from '../backend/pool/places.ts';
import type { PlaceKind } from './forwarding/backend-errors.ts';

/** Counts of the proxied side, for the metrics. */
export class ProxyCounters {
  /** Requests whose response is not over. */
  inFlight = 0;
  /** Since the start: requests and upgrades that got no place with the backend, by the bound that was reached. */
  readonly overloaded: Record<PlaceKind, Record<NoPlace, number>> = {
    request: { full: 0, key_full: 0 },
    upgrade: { full: 0, key_full: 0 },
  };
  /** Since the start: exchanges that were ended because a body passed too slowly. */
  readonly tooSlow = { upload: 0, download: 0 };

  readonly onOverloaded = (kind: PlaceKind, reason: NoPlace): void => {
    this.overloaded[kind][reason] += 1;
  };

  readonly onTooSlow = (direction: 'upload' | 'download'): void => {
    this.tooSlow[direction] += 1;
  };
}
