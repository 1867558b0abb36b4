import { setImmediate } from 'node:timers/promises';
import { RawPeer } from '../support/raw-peer.ts';
import type { RecordingBackend } from './recording-backend.ts';
import type { ReadRequest } from './strict-reading.ts';

/** One address that a gateway listens at, a port or a socket's path, with its own backend, so that what reaches the backend is known to come from there. */
export interface Lane {
  readonly address: number | string;
  readonly backend: RecordingBackend;
  /** Resolves when the gateway has nothing under way at its backend. */
  settled(): Promise<void>;
}

/** A program that takes requests from strangers and passes them on. */
export interface Contender {
  readonly version: string;
  readonly lanes: readonly Lane[];
  stop(): Promise<void>;
}

/** What became of the bytes of one connection. */
export interface Outcome {
  /** Complete requests that reached the backend, in order. */
  readonly forwarded: readonly ReadRequest[];
  /** What reached the backend and was no HTTP. */
  readonly malformed: readonly string[];
  /** Status codes that the client got. */
  readonly responses: readonly number[];
}

/** Tells that enough is known, so that the end of the connection need not be waited for. */
export type Enough = (forwarded: readonly ReadRequest[]) => boolean;

/** Sends bytes on a connection of their own and waits until the gateway ends it (its own timeouts bound that). */
export async function sendTo(lane: Lane, bytes: string, enough: Enough = () => false): Promise<Outcome> {
  const { backend } = lane;
  const satisfied = new Promise<void>((resolve) => {
    backend.reset(() => enough(backend.requests) && resolve());
  });
  const client = await RawPeer.connect(lane.address);
  try {
    client.send(bytes);
    await Promise.race([client.ended(), satisfied]);
    await lane.settled();
    // What has arrived already may not have been read yet.
    await setImmediate();
    await setImmediate();
  } finally {
    client.destroy();
  }
  return {
    forwarded: [...backend.requests],
    malformed: [...backend.malformed],
    responses: [...client.text.matchAll(/HTTP\/1\.\d (\d{3}) /g)].map(([, status]) => Number(status)),
  };
}

/** Does something for each item, one at a time on each lane. The results are in the items' order. */
export async function overLanes<Item, Result>(
  lanes: readonly Lane[],
  items: readonly Item[],
  work: (lane: Lane, item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  let next = 0;
  await Promise.all(
    lanes.map(async (lane) => {
      while (next < items.length) {
        const index = next;
        next += 1;
        results[index] = await work(lane, items[index] as Item);
      }
    }),
  );
  return results;
}
