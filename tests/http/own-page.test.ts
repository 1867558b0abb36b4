import { describe, expect, it } from '@jest/globals';
import { ownPageTest } from '../../src/http/own-page.ts';

const PUBLIC = 'https://api.example.com';
const EVIL = 'https://evil.example';

describe('a request', () => {
  it.each([
    ['a browser says so', { 'sec-fetch-site': 'same-origin', host: 'api.example.com' }],
    ['a browser says so, of any host', { 'sec-fetch-site': 'same-origin', host: 'a', origin: 'https://a' }],
    ['its origin is the public one', { origin: PUBLIC, host: 'replica-1:8080' }],
    ['it is of this machine', { origin: 'http://localhost:8080', host: 'localhost:8080' }],
    ['it is of this machine by address', { origin: 'http://127.0.0.1:80', host: '127.0.0.1:80' }],
    ['it is of this machine by IPv6', { origin: 'http://[::1]:8080', host: '[::1]:8080' }],
  ])('is of an own page: %s', (_why, headers) => {
    expect(ownPageTest(PUBLIC)({ headers })).toBe(true);
  });

  it.each([
    ['nothing says so', { host: 'api.example.com' }],
    ['its host is what its origin says, as anyone can make a name', { origin: EVIL, host: 'evil.example' }],
    ['its host is forged', { origin: EVIL, host: 'localhost:8080' }],
    ['its host is forged to the public one', { origin: EVIL, host: 'api.example.com' }],
    [
      'its origin contradicts what the browser says',
      { 'sec-fetch-site': 'same-origin', origin: EVIL, host: 'a' },
    ],
    ['it is cross-site', { 'sec-fetch-site': 'cross-site', origin: EVIL, host: 'evil.example' }],
    ['it is cross-site without an origin', { 'sec-fetch-site': 'cross-site', host: 'localhost:8080' }],
    ['it was typed', { 'sec-fetch-site': 'none', host: 'localhost:8080' }],
    [
      'it is of another port',
      { 'sec-fetch-site': 'same-site', origin: 'http://localhost:3000', host: 'localhost:8080' },
    ],
    [
      'it only looks like this machine',
      { origin: 'http://localhost.evil.example', host: 'localhost.evil.example' },
    ],
    ['its origin is opaque', { origin: 'null', host: 'null' }],
    ['its origin begins like the public one', { origin: `${PUBLIC}.evil.example`, host: 'a' }],
    ['its scheme is another one', { origin: 'http://api.example.com', host: 'api.example.com' }],
  ])('is not: %s', (_why, headers) => {
    expect(ownPageTest(PUBLIC)({ headers })).toBe(false);
    expect(ownPageTest(null)({ headers })).toBe(false);
  });
});
