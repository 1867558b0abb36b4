import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { EVENT_GUIDE, EVENT_SCHEMAS, eventSchemas, guideWithTypes } from './event-schemas.ts';

// Writes docs/events and the table of docs/events.md after a change to the table of types; a test holds that they are current.
rmSync(EVENT_SCHEMAS, { recursive: true, force: true });
mkdirSync(EVENT_SCHEMAS);
for (const [file, schema] of eventSchemas())
  writeFileSync(new URL(file, EVENT_SCHEMAS), `${JSON.stringify(schema, undefined, 2)}\n`);
writeFileSync(EVENT_GUIDE, guideWithTypes(readFileSync(EVENT_GUIDE, 'utf8')));
