import { describe, expect, it } from '@jest/globals';
import { type FinishedExchange, reusableForMs } from '../../src/backend/connection-reuse.ts';
import { readResponseHead } from '../../src/backend/response-head.ts';

function idleTimeAfter(head: string, changes: Partial<FinishedExchange> = {}): number {
  const read = readResponseHead(`${head}\r\n`);
  if (read === undefined) throw new Error(`no head: ${head}`);
  return reusableForMs({
    method: 'GET',
    hadBody: false,
    isRequestSent: true,
    head: read,
    hasSurplus: false,
    ...changes,
  });
}

const COMPLETE = 'HTTP/1.1 200 OK\r\nContent-Length: 2';

describe('a backend connection is used again', () => {
  it.each([
    ['after a body with a length', COMPLETE],
    ['after a body of no bytes', 'HTTP/1.1 200 OK\r\nContent-Length: 0'],
    ['after a body in chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked'],
    ['after a 204', 'HTTP/1.1 204 No Content'],
    ['after a 204 that says that it has no body', 'HTTP/1.1 204 No Content\r\nContent-Length: 0'],
    ['after a 304', 'HTTP/1.1 304 Not Modified\r\nETag: "a"'],
    ['after an HTTP/1.0 that keeps it', 'HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2'],
  ])('%s', (_when, head) => {
    expect(idleTimeAfter(head)).toBe(4000);
  });

  it.each(['POST', 'PUT', 'PATCH', 'PROPFIND'])('after a body of %s', (method) => {
    expect(idleTimeAfter(COMPLETE, { method, hadBody: true })).toBe(4000);
  });

  it('for as long as Keep-Alive says, less a second, and at most for ten minutes', () => {
    expect(idleTimeAfter(`${COMPLETE}\r\nKeep-Alive: timeout=5, max=100`)).toBe(4000);
    expect(idleTimeAfter(`${COMPLETE}\r\nKeep-Alive: timeout=60`)).toBe(59_000);
    expect(idleTimeAfter(`${COMPLETE}\r\nKeep-Alive: timeout=999999999`)).toBe(600_000);
  });
});

describe('a backend connection is closed', () => {
  it.each([
    ['after Connection: close', `${COMPLETE}\r\nConnection: close`],
    ['after Connection: close among others', `${COMPLETE}\r\nConnection: keep-alive, Close`],
    [
      'after Connection: close in a line before others',
      `${COMPLETE}\r\nConnection: close\r\nConnection: x-hop`,
    ],
    ['after HTTP/1.0 without keep-alive', 'HTTP/1.0 200 OK\r\nContent-Length: 2'],
    ['after a body that ends with it', 'HTTP/1.1 200 OK\r\nA: b'],
    ['after a 204 with a length', 'HTTP/1.1 204 No Content\r\nContent-Length: 2'],
    ['after a 204 in chunks', 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked'],
    ['after a 304 with a length', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 2'],
    ['after a 304 in chunks', 'HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked'],
    ['when the backend keeps it for less than a second', `${COMPLETE}\r\nKeep-Alive: timeout=1`],
  ])('%s', (_when, head) => {
    expect(idleTimeAfter(head)).toBe(0);
  });

  it.each([
    ['after HEAD, whatever the response', { method: 'HEAD' }],
    ['after a GET with a body, which a server may take for a request', { hadBody: true }],
    ['after a DELETE with a body', { method: 'DELETE', hadBody: true }],
    ['when the request was not sent whole', { isRequestSent: false }],
    ['when more arrived than the response', { hasSurplus: true }],
  ] as const)('%s', (_when, changes) => {
    expect(idleTimeAfter(COMPLETE, changes)).toBe(0);
    expect(idleTimeAfter('HTTP/1.1 204 No Content', changes)).toBe(0);
  });
});
