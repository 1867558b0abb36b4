import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { customerName, endpointName } from '../../src/usage/usage-names.ts';
import { codePoint } from '../support/code-point.ts';

const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;
const anyText = fc.oneof(
  fc.string({ unit: codePoint, maxLength: 400 }),
  fc.string({ unit: 'grapheme', maxLength: 400 }),
  fc.array(fc.nat(0xffff), { maxLength: 400 }).map((units) => String.fromCharCode(...units)),
);

describe('the name under which a request is counted', () => {
  it('is a path without its query, and at most 256 bytes of it', () => {
    expect(endpointName('/v1/pets?secret=1')).toBe('/v1/pets');
    expect(endpointName(`/${'a'.repeat(255)}`)).toHaveLength(256);
    expect(endpointName(`/${'a'.repeat(5000)}`)).toBe(`/${'a'.repeat(255)}`);
    expect(endpointName(`/${'é'.repeat(200)}`)).toBe(`/${'é'.repeat(127)}`);
    expect(endpointName('*')).toBe('*');
    expect(endpointName('?x')).toBe('/');
  });

  it('is a customer, at most 128 characters and 192 bytes of it, printable', () => {
    expect(customerName('acme inc.')).toBe('acme inc.');
    expect(customerName('Zoë 🚀')).toBe('Zoë 🚀');
    expect(customerName('x'.repeat(128))).toBe('x'.repeat(128));
    expect(customerName('x'.repeat(4096))).toBe('x'.repeat(128));
    expect(customerName('🚀'.repeat(128))).toBe('🚀'.repeat(48));
    expect(customerName('__proto__')).toBe('__proto__');
    expect(customerName('a\u0007b\u202ec')).toBe('a\ufffdb\ufffdc');
  });

  it('is anonymous where the customer is blank', () => {
    for (const blank of ['', '   ', '\t']) expect(customerName(blank)).toBe('anonymous');
  });

  it('is printable, short, well-formed and its own name, whatever was sent', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const [endpoint, customer] = [endpointName(text), customerName(text)];
        for (const name of [endpoint, customer]) {
          expect(name).not.toMatch(UNPRINTABLE);
          expect(name.isWellFormed()).toBe(true);
          expect(name).not.toBe('');
        }
        expect(Buffer.byteLength(endpoint)).toBeLessThanOrEqual(256);
        expect(Buffer.byteLength(customer)).toBeLessThanOrEqual(192);
        expect([...customer].length).toBeLessThanOrEqual(128);
        expect(endpointName(endpoint)).toBe(endpoint);
        expect(customerName(customer)).toBe(customer);
      }),
      { numRuns: 500 },
    );
  });
});
