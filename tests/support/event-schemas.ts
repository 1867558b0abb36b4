import { eventSchema } from '../../src/events/event-schema.ts';
import { EVENT_TYPES, type EventType } from '../../src/events/event-types.ts';

export const EVENT_SCHEMAS = new URL('../../docs/events/', import.meta.url);
export const EVENT_GUIDE = new URL('../../docs/events.md', import.meta.url);

const TYPES = Object.keys(EVENT_TYPES) as readonly EventType[];

/** The JSON schema of the events of each type, by the name of its file. */
export function eventSchemas(): ReadonlyMap<string, object> {
  const $schema = 'https://json-schema.org/draft/2020-12/schema';
  return new Map(TYPES.map((type) => [`${type}.json`, { $schema, title: type, ...eventSchema(type) }]));
}

/** The guide with a row for each type in the table of types. */
export function guideWithTypes(guide: string): string {
  const rows = TYPES.map((type) => {
    const { subject, when, scope } = EVENT_TYPES[type];
    const sentence = when.charAt(0).toLowerCase() + when.slice(1).replace(/\.$/, '');
    const named = subject.replaceAll(/\w+Id\b/g, '`$&`');
    return `| [\`${type}\`](events/${type}.json) | ${named} | ${sentence} | \`${scope}\` |\n`;
  });
  return guide.replace(/(?:^\| \[`tollgate\.[^\n]*\n)+/m, rows.join(''));
}
