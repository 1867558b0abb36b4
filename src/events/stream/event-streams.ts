import { setTimeout as pause } from 'node:timers/promises';
import { StoreUnavailable, TollgateError } from '../../errors.ts';
import type { Clock } from '../../platform/clock.ts';
import { ConcurrencyLimit } from '../../platform/concurrency/concurrency-limit.ts';
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
   * From now on, and for 7 days, events are written even if there is no webhook, those of usage only if they are heard. Writes at most once
   * a minute, however many streams are opened.
   */
  follow(hearsUsage: boolean): Promise<Followed>;
  /** Considers a bounded number of events after one of them. */
  after(sequence: number, filter: EventFilter): Promise<EventPage>;
}

/** Which events are read. */
export interface EventFilter {
  /** Types, or beginnings of types and `*`. */
  readonly events: readonly string[];
  /** Undefined = about any. */
  readonly subject: string | undefined;
}

/** A part of the outbox. */
export interface EventPage {
  /** Those that the filter selects, at most 100, oldest first. */
  readonly events: readonly NumberedEvent[];
  /** The number of the last event that was considered. */
  readonly position: number;
  /** Whether there was no event after it. */
  readonly isEnd: boolean;
}

/** How a stream begins. */
export interface Followed {
  /** The number of the last event. */
  readonly lastEvent: number;
  /** Whether it was noted that events are heard: nothing may have heard them before. */
  readonly isNoted: boolean;
}

/** What `EventStreams` is built from. */
export interface EventStreamsOptions {
  readonly reader: EventReader;
  /** `source` of all events. */
  readonly source: string;
  readonly clock: Clock;
  /** Is called when a stream begins to hear events that nothing may have heard before. */
  readonly wake: () => void;
}

/** A client's request for a stream. */
export interface StreamRequest extends Subscription, EventFilter {
  /** Names the client. Its streams leave room for those of others. */
  readonly client: string;
  /** The number of the last event that the client has; undefined = it wants those from now on. */
  readonly afterSequence: number | undefined;
  /** Whether the client may still hear what it could hear at the beginning. */
  readonly isAllowed: () => Promise<boolean>;
}

/** Streams of a process at a time. */
const MOST_STREAMS = 64;
/** Those of one client: no client keeps all others out. */
const MOST_OF_CLIENT = 16;
const READS = { maxRunning: 1, maxWaiting: MOST_STREAMS, overloaded: tooManyStreams };
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
  /** Clients take turns. Each stream waits for one read at a time. */
  readonly #reads = new ConcurrencyLimit(READS);
  #isStopped = false;

  constructor(options: EventStreamsOptions) {
    this.#options = options;
  }

  /** Resolves with the chunks of a stream. It ends by itself when the gateway stops, the store is away, or the client may hear less. */
  async open(request: StreamRequest): Promise<AsyncIterable<string>> {
    const stream = this.#takePlace(request.client);
    try {
      const { lastEvent, isNoted } = await this.#options.reader.follow(hearsUsage(request));
      if (isNoted) this.#options.wake();
      const from = Math.min(request.afterSequence ?? lastEvent, lastEvent);
      return this.#endingAtOnce(stream, this.#chunks(request, from, stream));
    } catch (error) {
      this.#open.delete(stream);
      throw error;
    }
  }

  /** Ends all streams. */
  stop(): void {
    this.#isStopped = true;
    for (const { end } of this.#open) end.abort();
  }

  /** Before anything is read: streams that are being opened at once count as well. */
  #takePlace(client: string): OpenStream {
    const own = [...this.#open].filter((stream) => stream.client === client).length;
    if (this.#open.size >= MOST_STREAMS || own >= MOST_OF_CLIENT) throw tooManyStreams();
    const stream = { client, end: new AbortController() };
    this.#open.add(stream);
    return stream;
  }

  /** The chunks of a stream, which ends as soon as its client has gone: by itself it would wait for its next chunk first. */
  #endingAtOnce(stream: OpenStream, chunks: AsyncGenerator<string>): AsyncIterable<string> {
    return {
      [Symbol.asyncIterator]: () => ({
        next: () => chunks.next(),
        return: () => {
          stream.end.abort();
          // A generator that was not begun has no end.
          return chunks.return(undefined).finally(() => this.#open.delete(stream));
        },
      }),
    };
  }

  async *#chunks(request: StreamRequest, from: number, stream: OpenStream): AsyncGenerator<string> {
    try {
      if (this.#isStopped) return;
      // Sends the head of the response at once, and where a client goes on that is disconnected before its first event.
      yield `: open\n${positionText(from)}`;
      yield* this.#followed(request, from, stream.end.signal);
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
      const page = await this.#readAfter(position, request);
      position = page.position;
      const wanted = page.events.filter((event) => hears(request, event));
      const nowMs = clock.monotonicMs();
      if (wanted.length > 0 || nowMs - checkedMs >= HEARTBEAT_MS) {
        if (!(await request.isAllowed())) return;
        checkedMs = nowMs;
        if (wanted.length === 0) yield `: heartbeat\n${positionText(position)}`;
        // One by one: of a client that reads nothing, no more is buffered.
        for (const event of wanted) yield messageOf(event, source);
      }
      if (nowMs - followedMs >= FOLLOW_AGAIN_MS) {
        await reader.follow(hearsUsage(request));
        followedMs = nowMs;
      }
      if (page.isEnd) await pause(POLL_MS, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  /** Streams that catch up read without a pause: one at a time, so that all of them together use one connection to the store. */
  #readAfter(position: number, request: StreamRequest): Promise<EventPage> {
    return this.#reads.run(() => this.#options.reader.after(position, request), request.client);
  }
}

function tooManyStreams(): TollgateError {
  return new TollgateError('overloaded', 'Too many streams are open. Try again shortly.');
}

function hearsUsage({ events }: StreamRequest): boolean {
  return hears({ events, onlyTags: [] }, { type: BATCHED_TYPE, tags: [] });
}

/** Only the number of the last event that was considered, which a browser keeps for `Last-Event-ID` like that of a message. */
function positionText(position: number): string {
  return `id: ${position}\n\n`;
}

/** A message of server-sent events. JSON has no line breaks. */
function messageOf(event: NumberedEvent, source: string): string {
  return `id: ${event.sequence}\ndata: ${cloudEventText(event, source)}\n\n`;
}
