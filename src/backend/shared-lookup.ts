import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { type Clock, systemClock } from '../platform/clock.ts';

/** How long addresses are used without another look. Milliseconds. */
const FRESH_MS = 1000;
/** How long the last ones are used where the system finds none, or takes long: as long as a connection is used at most. Milliseconds. */
const KEPT_MS = 300_000;

type Found = (error: Error | null, addresses: readonly LookupAddress[]) => void;

/**
 * A look-up of one name for all connections to it. Node makes few look-ups at a time and can't withdraw one: where each takes seconds, one for
 * each connection would wait behind those of connections that were given up long ago. So one is under way at a time; meanwhile, and when it
 * fails, the last addresses are used.
 */
export function sharedLookup(lookUp: typeof lookup = lookup, clock: Clock = systemClock): LookupFunction {
  let last: { readonly addresses: readonly LookupAddress[]; readonly atMs: number } | undefined;
  let waiting: Found[] | undefined;
  let turn = 0;

  const isYounger = (ms: number) => last !== undefined && clock.monotonicMs() - last.atMs < ms;
  const find = (name: string, options: LookupOptions, found: Found): void => {
    if (last !== undefined && isYounger(waiting === undefined ? FRESH_MS : KEPT_MS)) {
      // The caller goes on first, as with a look-up by the system.
      process.nextTick(found, null, last.addresses);
    } else if (waiting !== undefined) {
      waiting.push(found);
    } else {
      waiting = [found];
      // Each connection asks with the same options.
      lookUp(name, { ...options, all: true }, (error, addresses) => {
        if (error === null) last = { addresses, atMs: clock.monotonicMs() };
        const waited = waiting ?? [];
        waiting = undefined;
        const known = last !== undefined && isYounger(KEPT_MS) ? last.addresses : undefined;
        for (const each of waited) each(known === undefined ? error : null, known ?? []);
      });
    }
  };
  return (name, options, found) =>
    find(name, options, (error, addresses) => {
      turn += 1;
      const inTurn = rotated(addresses, turn);
      const [first] = inTurn;
      if (options.all) found(error, [...inTurn]);
      else found(error, first?.address ?? '', first?.family);
    });
}

/** Addresses of one family begin with another one for each connection, as they do in the responses of many name servers. */
function rotated(addresses: readonly LookupAddress[], turn: number): readonly LookupAddress[] {
  if (addresses.some(({ family }) => family !== addresses[0]?.family)) return addresses;
  const first = turn % Math.max(addresses.length, 1);
  return [...addresses.slice(first), ...addresses.slice(0, first)];
}
