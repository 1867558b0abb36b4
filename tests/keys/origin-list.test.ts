import { describe, expect, it } from '@jest/globals';
import { entriesFor, isOriginEntry, OriginList, writtenOrigin } from '../../src/keys/origin-list.ts';

describe('an entry of a list of origins', () => {
  it.each([
    'https://app.example.com',
    'http://localhost:3000',
    'https://app.example.com:8443',
    'http://127.0.0.1:5173',
    'http://[::1]:3000',
    'https://xn--bcher-kva.example',
    'https://*.example.com',
    'https://*.preview.example.com:8443',
  ])('may be %s', (text) => {
    expect(isOriginEntry(text)).toBe(true);
    expect(writtenOrigin(text)).toBe(text);
  });

  it.each([
    ['HTTPS://App.Example.com', 'https://app.example.com'],
    ['https://app.example.com:443', 'https://app.example.com'],
    ['http://app.example.com:80', 'http://app.example.com'],
    ['https://app.example.com/', 'https://app.example.com'],
    ['https://app.example.com/shop?a#b', 'https://app.example.com'],
    ['https://bücher.example', 'https://xn--bcher-kva.example'],
    [' https://app.example.com', 'https://app.example.com'],
    ['https://*.Example.com/', 'https://*.example.com'],
  ])('%s is to be written %s', (text, written) => {
    expect(isOriginEntry(text)).toBe(false);
    expect(writtenOrigin(text)).toBe(written);
  });

  it.each([
    '',
    '*',
    'null',
    'app.example.com',
    'https://',
    'https://*',
    'https://*.com',
    'https://*.localhost',
    'https://*.*.example.com',
    'https://app.*.example.com',
    'https://app*.example.com',
    'https://*.10.0.0.1',
    'ftp://app.example.com',
    'file:///index.html',
    'chrome-extension://abcdefgh',
  ])('is never %j', (text) => {
    expect(isOriginEntry(text)).toBe(false);
    expect(writtenOrigin(text)).toBeUndefined();
  });

  it('has a length that an origin can have', () => {
    expect(isOriginEntry(`https://${'a.'.repeat(200)}example`)).toBe(false);
  });
});

describe('a list of origins', () => {
  const list = new OriginList(['https://app.example.com', 'http://localhost:3000', 'https://*.example.org']);

  it.each([
    'https://app.example.com',
    'http://localhost:3000',
    'https://a.example.org',
    'https://xn--a-0ga.example.org',
  ])('includes %s', (origin) => {
    expect(list.includes(origin)).toBe(true);
  });

  it.each([
    'null',
    '',
    'https://APP.example.com',
    'https://app.example.com:443',
    'https://app.example.com/',
    'https://app.example.com, https://app.example.com',
    'http://app.example.com',
    'https://app.example.com.evil.example',
    'https://evil.example/https://app.example.com',
    'http://localhost:3001',
    'https://example.org',
    'https://a.b.example.org',
    'https://a.example.org:8443',
    'http://a.example.org',
    'https://*.example.org',
    'https://evil.example#.example.org',
    'https://evilexample.org',
    'https://.example.org',
  ])('does not include %j', (origin) => {
    expect(list.includes(origin)).toBe(false);
  });

  it('looks for an origin, and for all names of its level', () => {
    expect(entriesFor('https://a.example.org')).toEqual(['https://a.example.org', 'https://*.example.org']);
    for (const none of ['null', 'https://*.example.org', 'https://A.example.org'])
      expect(entriesFor(none)).toEqual([]);
  });
});
