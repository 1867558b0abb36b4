import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { InvalidSettings, readSettings } from '../../src/settings/settings.ts';

const directory = mkdtempSync(join(tmpdir(), 'endpoint-patterns-'));
afterAll(() => rmSync(directory, { recursive: true }));

const BACKEND_URL = 'http://backend:3000';
const listed = (ENDPOINT_PATTERNS: string) =>
  readSettings({ BACKEND_URL, ENDPOINT_PATTERNS }).endpointPatterns;

let files = 0;
function inFile(content: string): readonly string[] {
  files += 1;
  const file = join(directory, `${files}`);
  writeFileSync(file, content);
  return readSettings({ BACKEND_URL, ENDPOINT_PATTERNS_FILE: file }).endpointPatterns;
}

function faultsOf(read: () => unknown): readonly string[] {
  try {
    read();
  } catch (error) {
    if (error instanceof InvalidSettings) return error.faults;
    throw error;
  }
  return [];
}

const OPENAPI_YAML = `
# The API of a shop
openapi: 3.1.0
info: { title: Shop, version: "1" }
servers: [{ url: https://api.example.com/v1 }]
paths:
  /users/{id}: { get: { operationId: user } }
  /users/me: { get: { operationId: me } }
  "/{shop}/items": {}
  /users/{id}/orders/{orderId}: {}
  x-internal: true
`;
const OPENAPI_ORDER = ['/users/me', '/users/{id}', '/users/{id}/orders/{orderId}', '/{shop}/items'];

describe('ENDPOINT_PATTERNS', () => {
  it('is a list whose order stays, separated by commas, and empty by default', () => {
    expect(readSettings({ BACKEND_URL }).endpointPatterns).toEqual([]);
    expect(listed('/users/{id}, /users/me,/files/**')).toEqual(['/users/{id}', '/users/me', '/files/**']);
  });

  it('names the place and the fault of a malformed pattern', () => {
    expect(faultsOf(() => listed('/ok,users/{id}'))).toEqual([
      'ENDPOINT_PATTERNS: pattern 2 must begin with "/"',
    ]);
    expect(faultsOf(() => listed('/a,,/b'))).toEqual(['ENDPOINT_PATTERNS: pattern 2 must begin with "/"']);
  });

  it('may be a file with a pattern a line, which keep their commas', () => {
    expect(inFile('# people\n/users/{id}\r\n\n  /map/1,2/tile\n')).toEqual(['/users/{id}', '/map/1,2/tile']);
  });

  it('may be an OpenAPI document, concrete paths before templated ones', () => {
    expect(inFile(OPENAPI_YAML)).toEqual(OPENAPI_ORDER);
    const json = { swagger: '2.0', paths: { '/a/{b}': {}, '/a/b': {} } };
    expect(inFile(JSON.stringify(json, null, 2))).toEqual(['/a/b', '/a/{b}']);
  });

  it.each([
    ['/ok\n\n/a//b', 'line 3 has an empty segment ("//")'],
    ['# nothing', 'the file has no pattern'],
    ['{"paths": ', 'the file is not well-formed JSON'],
    ['openapi: 3.1.0\npaths:\n  /a: [', 'the file is not well-formed YAML'],
    ['{"openapi": "3.1.0"}', 'the file is no OpenAPI document: it has no "paths"'],
    ['openapi: 3.1.0\npaths: []', 'the file is no OpenAPI document: it has no "paths"'],
    ['openapi: 3.1.0\npaths: {}', 'the OpenAPI document has no path'],
    [
      'openapi: 3.1.0\npaths:\n  /a.{format}: {}',
      'the path "/a.{format}" has a "{" or "}" inside a segment: "{name}" stands for a whole segment',
    ],
  ])('as the file %j is rejected with the reason', (content, fault) => {
    expect(faultsOf(() => inFile(content))).toEqual([`ENDPOINT_PATTERNS: ${fault}`]);
  });

  it('repeats nothing of a secret whose file was named by mistake', () => {
    const faults = faultsOf(() => inFile('root-token-of-at-least-32-characters'));
    expect(faults).toEqual(['ENDPOINT_PATTERNS: line 1 must begin with "/"']);
  });

  it('is given either directly or by a file that can be read', () => {
    const file = join(directory, 'missing');
    expect(faultsOf(() => readSettings({ BACKEND_URL, ENDPOINT_PATTERNS_FILE: file }))).toEqual([
      'ENDPOINT_PATTERNS_FILE: the file can not be read (ENOENT)',
    ]);
    expect(
      faultsOf(() => readSettings({ BACKEND_URL, ENDPOINT_PATTERNS: '/a', ENDPOINT_PATTERNS_FILE: file })),
    ).toEqual(['ENDPOINT_PATTERNS: is set both directly and by ENDPOINT_PATTERNS_FILE; keep one']);
  });
});
