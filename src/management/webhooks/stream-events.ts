import { MissingScope, TollgateError } from '../../errors.ts';
import { patternFault, scopesOf, typesHeardBy } from '../../events/event-patterns.ts';
import type { FieldSchema } from '../../http/body-schema.ts';
import { missingScope, type Principal } from '../../permissions/principal.ts';
import { isStorable } from '../../platform/text/storable-text.ts';
import { type Endpoint, StreamedText } from '../endpoint.ts';
import { queryParameters } from '../query-parameters.ts';
import { isUnchanged } from '../unchanged-principal.ts';
import { WEBHOOK_FIELDS } from './webhook-fields.ts';

const STREAM_QUERY = {
  type: {
    description:
      'must be at most 50 event types, or beginnings of types and *, separated by commas; without it all types that may be heard',
    type: 'string',
  },
  subject: { description: 'must be the subject of the events', type: 'string' },
} as const satisfies Readonly<Record<string, FieldSchema>>;

const { readText, readValid, invalid } = queryParameters(STREAM_QUERY);

/** Streams events as they happen, and those since `Last-Event-ID`. */
export const streamEvents: Endpoint = {
  method: 'get',
  path: '/tollgate/events',
  operationId: 'streamEvents',
  summary: 'Follow events as server-sent events',
  scope: 'webhooks:read',
  query: STREAM_QUERY,
  status: 200,
  response: { description: 'Each message has a CloudEvent as its data and its number as its id.' },
  eventStream: true,
  errors: ['invalid_parameter'],
  async handle({ query, principal, isHead, header }, { streams, tokens, sessions, clock }) {
    const events = patternsOf(readText(query, 'type'), principal);
    // Proxies that buffer, or that compress and so hold small chunks back, pass each chunk on at once.
    const headers = { 'X-Accel-Buffering': 'no', 'Cache-Control': 'no-store, no-transform' };
    if (isHead) return new StreamedText('text/event-stream', [], headers);
    const chunks = await streams.open({
      client: principal.id ?? principal.type,
      events,
      onlyTags: principal.onlyTags,
      // No record has another text, and the store rejects it.
      subject: readValid(query, 'subject', isStorable),
      afterSequence: sequenceOf(header('Last-Event-ID')),
      isAllowed: () => isUnchanged(principal, { tokens, sessions, clock }),
    });
    return new StreamedText('text/event-stream', chunks, headers);
  },
};

/** Throws `invalid_parameter` for an unknown type, and `MissingScope` for one that the principal may not hear. */
function patternsOf(text: string | undefined, principal: Principal): readonly string[] {
  if (text === undefined) return typesHeardBy(principal);
  const patterns = [...new Set(text.split(','))];
  if (patterns.length > WEBHOOK_FIELDS.events.maxItems) throw invalid('type');
  const fault = patterns.map(patternFault).find((each) => each !== undefined);
  if (fault !== undefined) throw new TollgateError('invalid_parameter', fault);
  const missing = missingScope(principal, scopesOf(patterns));
  if (missing !== undefined) throw new MissingScope(missing);
  return patterns;
}

/** The number of an event; undefined for a text that is none of ours. */
function sequenceOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
