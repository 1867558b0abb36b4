import { messagesOf } from '../../client/event-stream.ts';
import type { ManagementClient } from '../../client/management-client.ts';
import { ManagementFault } from '../../client/management-fault.ts';
import { faultKind } from './fault-kind.ts';

/** A part of the page that wants to know what happens. */
export interface Follower {
  /** Called with the types of the events since the last call: at most twice a second, however many events there are. */
  readonly onEvents: (types: ReadonlySet<string>) => void;
  /** Called when the stream has opened or ended. */
  readonly onState: () => void;
}

/** Resolves with the chunks of a stream of events, those since `lastId` if there is one. */
export type ConnectEvents = (
  lastId: string | undefined,
  signal: AbortSignal,
) => Promise<AsyncIterable<string>>;

/** How long the stream stays open while no one follows it, or the tab is hidden. Browsers allow six connections to a host. */
const IDLE_MS = 30_000;
/** The gateway sends a heartbeat every 15 s. */
const SILENCE_MS = 45_000;
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 60_000;
const NOTIFY_MS = 500;

/** The one stream of events of this tab. It is open while someone follows it and the tab is visible. */
export class EventFeed {
  readonly #connect: ConnectEvents;
  readonly #followers = new Set<Follower>();
  readonly #types = new Set<string>();
  #connection: AbortController | undefined;
  #idle: ReturnType<typeof setTimeout> | undefined;
  #notification: ReturnType<typeof setTimeout> | undefined;
  #lastId: string | undefined;
  #isOpen = false;
  /** The gateway does not let this token hear events: asking again would add an entry to the audit log each time. */
  #isRejected = false;

  constructor(connect: ConnectEvents) {
    this.#connect = connect;
  }

  /** Whether events arrive. False: read the data again from time to time. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Follows the stream until the function that this returns is called. */
  follow(follower: Follower): () => void {
    if (this.#followers.size === 0) document.addEventListener('visibilitychange', this.#adapt);
    this.#followers.add(follower);
    this.#adapt();
    return () => {
      this.#followers.delete(follower);
      if (this.#followers.size === 0) document.removeEventListener('visibilitychange', this.#adapt);
      this.#adapt();
    };
  }

  /** Closes the stream at once. It opens again for the next follower. */
  close(): void {
    clearTimeout(this.#idle);
    clearTimeout(this.#notification);
    this.#idle = undefined;
    this.#notification = undefined;
    this.#types.clear();
    this.#connection?.abort();
    this.#connection = undefined;
    this.#setOpen(false);
  }

  /** Opens the stream, or closes it after a while, as the followers and the tab need it. */
  readonly #adapt = (): void => {
    if (this.#followers.size === 0 || document.hidden) {
      if (this.#connection !== undefined) this.#idle ??= setTimeout(() => this.close(), IDLE_MS);
      return;
    }
    clearTimeout(this.#idle);
    this.#idle = undefined;
    if (this.#connection !== undefined || this.#isRejected) return;
    this.#connection = new AbortController();
    void this.#run(this.#connection.signal);
  };

  /** Connects, and again after each end, with the last event seen. */
  async #run(closed: AbortSignal): Promise<void> {
    let waitMs = FIRST_WAIT_MS;
    while (!closed.aborted) {
      const hasOpened = await this.#listen(closed).catch((error: unknown) => {
        this.#isRejected = isRejection(error);
        return false;
      });
      if (closed.aborted) return;
      this.#setOpen(false);
      if (this.#isRejected) return this.close();
      waitMs = hasOpened ? FIRST_WAIT_MS : Math.min(waitMs * 2, LONGEST_WAIT_MS);
      await pause(waitMs, closed);
    }
  }

  /** Reads one stream to its end. Resolves with whether it had opened. */
  async #listen(closed: AbortSignal): Promise<boolean> {
    const silence = new AbortController();
    const restart = () => setTimeout(() => silence.abort(), SILENCE_MS);
    let timer = restart();
    const noted = async function* (feed: EventFeed, chunks: AsyncIterable<string>) {
      for await (const chunk of chunks) {
        clearTimeout(timer);
        timer = restart();
        // The first chunk comes at once. A proxy that holds it back would hold back events, too.
        if (!closed.aborted) feed.#setOpen(true);
        yield chunk;
      }
    };
    try {
      const chunks = await this.#connect(this.#lastId, AbortSignal.any([closed, silence.signal]));
      for await (const { id, data } of messagesOf(noted(this, chunks))) {
        if (closed.aborted) break;
        this.#lastId = id;
        if (data !== '') this.#note(data);
      }
    } catch (error) {
      if (!this.#isOpen) throw error;
    } finally {
      clearTimeout(timer);
    }
    return this.#isOpen;
  }

  #note(data: string): void {
    const type = typeOf(data);
    if (type === undefined) return;
    this.#types.add(type);
    this.#notification ??= setTimeout(() => {
      this.#notification = undefined;
      const types = new Set(this.#types);
      this.#types.clear();
      for (const { onEvents } of this.#followers) onEvents(types);
    }, NOTIFY_MS);
  }

  #setOpen(isOpen: boolean): void {
    if (this.#isOpen === isOpen) return;
    this.#isOpen = isOpen;
    for (const { onState } of this.#followers) onState();
  }
}

/** The type of a CloudEvent in JSON. */
function typeOf(data: string): string | undefined {
  try {
    const { type }: { readonly type?: unknown } = JSON.parse(data);
    return typeof type === 'string' ? type : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Asks the gateway for the stream of the types that `types` gives, separated by commas. `EventSource` can't send the token.
 */
export function streamOf(client: ManagementClient, types: () => string): ConnectEvents {
  return async (lastId, signal) => {
    const { data, error, response } = await client.GET('/tollgate/events', {
      parseAs: 'stream',
      params: { query: { type: types() } },
      headers: lastId === undefined ? {} : { 'Last-Event-ID': lastId },
      signal,
    });
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
    if (!response.ok || !isStream || !(data instanceof ReadableStream))
      throw new ManagementFault(response, error);
    return textOf(data as ReadableStream<Uint8Array<ArrayBuffer>>);
  };
}

/** By a reader: not every browser can iterate over a stream. */
async function* textOf(stream: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
  } finally {
    // Otherwise the connection would stay open.
    await reader.cancel().catch(() => undefined);
  }
}

/** Whether the same request would be rejected again. */
function isRejection(error: unknown): boolean {
  return error instanceof ManagementFault && faultKind(error) !== 'unavailable';
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
