import { writeFileSync } from 'node:fs';
import { DOCUMENTED_ENDPOINTS } from '../../src/management/endpoints.ts';
import { openApiDocument } from '../../src/management/openapi/document.ts';

// Writes docs/openapi.json after a change to an endpoint; a test holds that the file is current.
writeFileSync(
  new URL('../../docs/openapi.json', import.meta.url),
  `${JSON.stringify(openApiDocument(DOCUMENTED_ENDPOINTS), undefined, 2)}\n`,
);
