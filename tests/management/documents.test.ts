import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { AUDIT_ACTIONS } from '../../src/audit/audit-entry.ts';
import { ERROR_CODES, TollgateError } from '../../src/errors.ts';
import { errorResponse } from '../../src/http/errors/error-responses.ts';
import { DOCUMENTED_ENDPOINTS } from '../../src/management/endpoints.ts';
import { openApiDocument } from '../../src/management/openapi/document.ts';

const guide = read('docs/api.md');

describe('docs/openapi.json', () => {
  it('is current (npm run openapi writes it)', () => {
    expect(JSON.parse(read('docs/openapi.json'))).toEqual(openApiDocument(DOCUMENTED_ENDPOINTS));
  });

  it('has an operation for every endpoint, each with its own id', () => {
    const document = openApiDocument(DOCUMENTED_ENDPOINTS) as { readonly paths: object };
    const idsIn = (part: object) =>
      [...JSON.stringify(part).matchAll(/"operationId":"(\w+)"/g)].map(([, id]) => id);
    const ids = DOCUMENTED_ENDPOINTS.map(({ operationId }) => operationId);
    expect(idsIn(document.paths).toSorted()).toEqual(ids.toSorted());
    expect(new Set(idsIn(document)).size).toBe(idsIn(document).length);
  });

  it.each([...DOCUMENTED_ENDPOINTS])(
    'describes the response of $operationId with a valid schema',
    ({ response }) => {
      const ajv = new Ajv2020({ strict: true, formats: { 'date-time': true } });
      expect(ajv.validateSchema(response)).toBe(true);
      expect(() => ajv.compile(response)).not.toThrow();
    },
  );

  it.each(DOCUMENTED_ENDPOINTS.filter(({ body }) => body !== undefined))(
    'describes the body of $operationId with a valid schema',
    ({ body = {} }) => {
      expect(new Ajv2020().validateSchema(body)).toBe(true);
    },
  );
});

describe('docs/api.md', () => {
  it.each(AUDIT_ACTIONS)('lists the audited action %s', (action) => {
    expect(guide).toContain(`| \`${action}\` | `);
  });

  it.each(ERROR_CODES)('lists the code %s with its status', (code) => {
    const { status } = errorResponse(new TollgateError(code, ''));
    expect(guide).toContain(`| \`${code}\` | ${status} |`);
  });

  it.each(DOCUMENTED_ENDPOINTS.map(({ method, path }) => [method.toUpperCase(), path]))(
    'lists %s %s',
    (method, path) => {
      expect(guide).toContain(`| ${method} | [\`${path}\`]`);
    },
  );

  it('names the longest body of every endpoint that takes more than the others', () => {
    const limits = DOCUMENTED_ENDPOINTS.flatMap(({ path, bodyLimitBytes }) => {
      const section = guide.split(`[\`${path}\`](`)[1]?.split(')')[0];
      return bodyLimitBytes === undefined ? [] : [`(${section}): ${bodyLimitBytes / 2 ** 20} MiB`];
    });
    const [list = ''] = /^- Bodies are JSON .+?\) and/ms.exec(guide) ?? [];
    expect(list.match(/\(#\S+: \d+ MiB/g)?.toSorted()).toEqual([...new Set(limits)].toSorted());
    const [error = ''] = /^\| `body_too_large` .+$/m.exec(guide) ?? [];
    expect(error.match(/\d+ MiB/g)).toEqual(list.match(/\d+ MiB/g));
  });
});

function read(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
}
