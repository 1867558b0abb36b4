import { setTimeout as pause } from 'node:timers/promises';
import { messagesOf, type StreamMessage } from '../../client/event-stream.ts';
import type { paths } from '../../client/management-api.ts';
import { bodyOf } from '../../client/management-client.ts';
import { ManagementFault } from '../../client/management-fault.ts';
import { isCertificateFault } from '../../client/retrying-fetch.ts';
import { CommandFault } from '../command-fault.ts';
import { explainFault } from '../explain-fault.ts';
import type { Session } from './session.ts';

/** Which events are followed. */
export type EventQuery = NonNullable<paths['/tollgate/events']['get']['parameters']['query']>;

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 30_000;
/** The gateway sends a heartbeat every 15 s. */
const SILENCE_MS = 45_000;
/** Statuses with which the same request may succeed a little later. */
const TEMPORARY: readonly number[] = [429, 502, 503, 504];

/**
 * The events from now on, each as JSON, without an end. A connection that breaks is made again, and goes on after the last event. Throws
 * if the gateway rejects the request, and if more than `retries` attempts to connect for the first time fail.
 */
export async function* followEvents(
  session: Session,
  query: EventQuery,
  { retries }: { readonly retries: number },
): AsyncGenerator<string> {
  let lastId: string | undefined;
  for (let failures = 0; ; failures += 1) {
    try {
      for await (const { id, data } of connect(session, query, lastId)) {
        failures = 0;
        lastId = id;
        if (data !== '') yield data;
      }
    } catch (error) {
      const hasConnected = lastId !== undefined;
      if (!isTemporary(error) || (!hasConnected && failures >= retries)) throw error;
    }
    const waitMs = waitMsAfter(failures);
    const what = lastId === undefined ? 'can not be opened' : 'has ended';
    session.output.note(`The stream of events ${what}. Connecting again in ${waitMs / 1000} s.`);
    await pause(waitMs);
  }
}

async function* connect(
  { client, fetchOnce }: Session,
  query: EventQuery,
  lastId: string | undefined,
): AsyncGenerator<StreamMessage> {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(new StreamSilent()), SILENCE_MS);
  try {
    const call = client.GET('/tollgate/events', {
      params: { query },
      headers: lastId === undefined ? {} : { 'last-event-id': lastId },
      parseAs: 'stream',
      fetch: (request) => fetchOnce(request, silence.signal),
    });
    const stream = (await bodyOf(call)) as ReadableStream<Uint8Array<ArrayBuffer>>;
    const { response } = await call;
    if (!response.headers.get('content-type')?.startsWith('text/event-stream'))
      throw new ManagementFault(response, undefined);
    yield* messagesOf(refreshing(stream.pipeThrough(new TextDecoderStream()), timer));
  } finally {
    clearTimeout(timer);
    silence.abort();
  }
}

/** The same chunks. Each restarts the timer. */
async function* refreshing(chunks: AsyncIterable<string>, timer: NodeJS.Timeout): AsyncGenerator<string> {
  for await (const chunk of chunks) {
    timer.refresh();
    yield chunk;
  }
}

/** A connection that breaks without a sign, as after the sleep of a laptop, sends no heartbeats. */
class StreamSilent extends CommandFault {
  constructor() {
    const message = `The gateway has sent nothing for ${SILENCE_MS / 1000} s. A proxy in front of it may hold the stream back.`;
    super('unavailable', message);
  }
}

/** Reads something again after each temporary failure, at most so often: a gateway that restarts ends nothing. */
export async function untilRead<T>(
  what: string,
  read: () => Promise<T>,
  { output }: Session,
  mostFailures = Number.POSITIVE_INFINITY,
): Promise<T> {
  for (let failures = 0; ; failures += 1) {
    try {
      return await read();
    } catch (error) {
      if (!isTemporary(error) || failures === mostFailures) throw error;
      const waitMs = waitMsAfter(failures);
      output.note(`${explainFault(error).message} ${what} is read again in ${waitMs / 1000} s.`);
      await pause(waitMs);
    }
  }
}

/** The wait of a command that follows something before it tries again. It doubles with each of the `failures` before in a row. */
function waitMsAfter(failures: number): number {
  return Math.min(FIRST_WAIT_MS * 2 ** failures, LONGEST_WAIT_MS);
}

/** Whether the same request may succeed a little later. */
function isTemporary(error: unknown): boolean {
  if (error instanceof ManagementFault) return TEMPORARY.includes(error.status);
  if (error instanceof StreamSilent || (error instanceof Error && error.name === 'TimeoutError')) return true;
  // `fetch` rejects with a TypeError if it can't connect or the connection breaks.
  return error instanceof TypeError && !isCertificateFault(error);
}
