import { describe, expect, it } from '@jest/globals';
import { oversizedFields } from '../../src/http/oversized-fields.ts';

describe('the search for oversized fields', () => {
  it.each([
    ['a text', { description: 'must be a text' }],
    ['an object', { properties: { name: {} }, additionalProperties: false as const }],
  ])('looks at no item of a list in the place of %s', (_what, schema) => {
    const list = Object.defineProperty([0], 0, {
      get: () => {
        throw new Error('looked at');
      },
    });
    expect(oversizedFields({ field: list }, { properties: { field: schema } }, 10)).toEqual([]);
  });
});
