import { setTimeout as pause } from 'node:timers/promises';
import { StoreUnavailable, TollgateError } from '../../errors.ts';
import type { Clock } from '../../platform/clock.ts';
import { hears, type Subscription } from '../event-patterns.ts';
import { BATCHED_TYPE } from '../event-types.ts';
import { cloudEventText, type OutboxEvent } from '../outbox-event.ts';

/** An event with its number in the outbox. */
export interface NumberedEvent extends OutboxEvent {
  readonly sequence: number;
}

/** The outbox as streams read it. Every method rejects with `StoreUnavailable`. */
export interface EventReader {
  /**
   * From now on, and for 7 days, events are written even if there is no webhook, those of usage only if they are heard. Resolves with the
   * number of the last event.
   */
  follow(hearsUsage: boolean): Promise<number>;
  /** The events after one of them, at most `limit`, oldest first. */
  after(sequence: number, limit: number): Promise<readonly NumberedEvent[]>;
}

/** What `EventStreams` is built from. */
export interface EventStreamsOptions {
  readonly reader: EventReader;
  /** `source` of all events. */
  readonly source: string;
  readonly clock: Clock;
  /** Is called when a stream begins to hear events. */
  readonly wake: () => void;
}

/** A client's request for a stream. */
export interface StreamRequest extends Subscription {
  /** Names the client. Its streams leave room for those of others. */
  readonly client: string;
  /** Only events about this subject; undefined = about any. */
  readonly subject: string | undefined;
  /** The number of the last event that the client has; undefined = it wants those from now on. */
  readonly afterSequence: number | undefined;
  /** Whether the client may still hear what it could hear at the beginning. */
  readonly isAllowed: () => Promise<boolean>;
}

/** Streams of a process at a time. */
const MOST_STREAMS = 64;
/** Those of one client: no client keeps all others out. */
const MOST_OF_CLIENT = 16;
const EVENTS_AT_ONCE = 100;
const POLL_MS = 1000;
const HEARTBEAT_MS = 15_000;
const FOLLOW_AGAIN_MS = 3_600_000;

interface OpenStream {
  readonly client: string;
  readonly end: AbortController;
}

/** Streams of server-sent events: CloudEvents, each with its number as `id`. Memory is bounded by the number of streams. */
export class EventStreams {
  readonly #options: EventStreamsOptions;
  readonly #open = new Set<OpenStream>();
  #isStopped = false;

  constructor(options: EventStreamsOptions) {
    this.#options = options;
  }

  /** Resolves with the chunks of a stream. It ends by itself when the gateway stops, the store is away, or the client may hear less. */
  async open(request: StreamRequest): Promise<AsyncIterable<string>> {
    if (!this.#hasRoomFor(request))
      throw new TollgateError('overloaded', 'Too many streams are open. Try again shortly.');
    const lastEvent = await this.#options.reader.follow(hearsUsage(request));
    this.#options.wake();
    const end = new AbortController();
    const from = Math.min(request.afterSequence ?? lastEvent, lastEvent);
    return endingAtOnce(this.#chunks(request, from, end), end);
  }

  /** Ends all streams. */
  stop(): void {
    this.#isStopped = true;
    for (const { end } of this.#open) end.abort();
  }

  #hasRoomFor({ client }: StreamRequest): boolean {
    const own = [...this.#open].filter((stream) => stream.client === client).length;
    return this.#open.size < MOST_STREAMS && own < MOST_OF_CLIENT;
  }

  async *#chunks(request: StreamRequest, from: number, end: AbortController): AsyncGenerator<string> {
    // Others may have been opened since the check.
    if (this.#isStopped || !this.#hasRoomFor(request)) return;
    const stream = { client: request.client, end };
    this.#open.add(stream);
    try {
      // Sends the head of the response at once, and where a client goes on that is disconnected before its first event.
      yield `: open\n${positionText(from)}`;
      yield* this.#followed(request, from, end.signal);
    } catch (error) {
      // The client connects again and goes on where it left off.
      if (!(error instanceof StoreUnavailable)) throw error;
    } finally {
      this.#open.delete(stream);
    }
  }

  async *#followed(request: StreamRequest, from: number, signal: AbortSignal): AsyncGenerator<string> {
    const { reader, clock, source } = this.#options;
    let position = from;
    let checkedMs = clock.monotonicMs();
    let followedMs = checkedMs;
    while (!signal.aborted) {
      const events = await reader.after(position, EVENTS_AT_ONCE);
      position = events.at(-1)?.sequence ?? position;
      const wanted = events.filter((event) => isWanted(request, event));
      const nowMs = clock.monotonicMs();
      if (wanted.length > 0 || nowMs - checkedMs >= HEARTBEAT_MS) {
        if (!(await request.isAllowed())) return;
        checkedMs = nowMs;
        yield wanted.length === 0
          ? `: heartbeat\n${positionText(position)}`
          : wanted.map((event) => messageOf(event, source)).join('');
      }
      if (nowMs - followedMs >= FOLLOW_AGAIN_MS) {
        await reader.follow(hearsUsage(request));
        followedMs = nowMs;
      }
      if (events.length < EVENTS_AT_ONCE)
        await pause(POLL_MS, undefined, { signal, ref: false }).catch(() => {});
    }
  }
}

/** The chunks of a generator, which ends as soon as its client has gone: by itself it would wait for its next chunk first. */
function endingAtOnce(chunks: AsyncGenerator<string>, end: AbortController): AsyncIterable<string> {
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => chunks.next(),
      return: () => {
        end.abort();
        return chunks.return(undefined);
      },
    }),
  };
}

function hearsUsage({ events }: StreamRequest): boolean {
  return hears({ events, onlyTags: [] }, { type: BATCHED_TYPE, tags: [] });
}

function isWanted(request: StreamRequest, event: NumberedEvent): boolean {
  return hears(request, event) && (request.subject === undefined || request.subject === event.subject);
}

/** Only the number of the last event that was considered, which a browser keeps for `Last-Event-ID` like that of a message. */
function positionText(position: number): string {
  return `id: ${position}\n\n`;
}

/** A message of server-sent events. JSON has no line breaks. */
function messageOf(event: NumberedEvent, source: string): string {
  return `id: ${event.sequence}\ndata: ${cloudEventText(event, source)}\n\n`;
}
