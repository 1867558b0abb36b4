import { writeFileSync } from 'node:fs';
import { openApiDocument } from '../../src/management/openapi.ts';

// Writes docs/openapi.json after a change to an endpoint; a test holds that the file is current.
writeFileSync(
  new URL('../../docs/openapi.json', import.meta.url),
  `${JSON.stringify(openApiDocument(), undefined, 2)}\n`,
);
