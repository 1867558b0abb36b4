import { describe, expect, it } from '@jest/globals';
import { InvalidBody } from '../../src/errors.ts';
import { type BodySchema, createBodyCompiler } from '../../src/http/body-schema.ts';

const SCHEMA: BodySchema = {
  type: 'object',
  additionalProperties: false,
  required: ['keys'],
  properties: {
    keys: {
      description: 'must be a list of at most 3 keys',
      type: 'array',
      maxItems: 3,
      items: {
        description: 'must be a key',
        type: 'object',
        additionalProperties: false,
        required: ['name'],
        properties: {
          name: { description: 'must be a string', type: 'string' },
          tags: {
            description: 'must be a list of at most 2 tags',
            type: ['array', 'null'],
            maxItems: 2,
            items: { description: 'must be a tag', type: 'string' },
          },
          metadata: {
            description: 'must be an object with at most 4 entries',
            type: 'object',
            maxProperties: 4,
            additionalProperties: { description: 'must be a string', type: 'string' },
          },
        },
      },
    },
  },
};
const check = createBodyCompiler({})(SCHEMA);

function faultsOf(body: unknown): readonly unknown[] {
  try {
    check(body);
  } catch (error) {
    if (error instanceof InvalidBody) return error.faults;
    throw error;
  }
  return [];
}

/** A list of a million values, none of which may be looked at. */
function untouchable(): readonly unknown[] {
  return new Proxy<unknown[]>(new Array(1_000_000), {
    get: (list, name, receiver) => {
      if (typeof name === 'string' && /^\d+$/.test(name)) throw new Error(`item ${name} was looked at`);
      return Reflect.get(list, name, receiver);
    },
  });
}

const crowded = () => Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`f${index}`, 1]));

describe('a body that holds more than its schema allows', () => {
  it('is rejected by its length, and what is in it is not looked at', () => {
    expect(faultsOf({ keys: untouchable() })).toEqual([
      { field: 'keys', message: 'must be a list of at most 3 keys' },
    ]);
    expect(faultsOf({ keys: [{ name: 'a' }, { name: 1, tags: untouchable() }] })).toEqual([
      { field: 'keys[1].tags', message: 'must be a list of at most 2 tags' },
    ]);
  });

  it('is rejected for objects with too many fields, as one fault each', () => {
    expect(faultsOf(crowded())).toEqual([
      { field: 'body', message: 'has too many fields that are not known here' },
    ]);
    expect(faultsOf({ keys: [crowded(), { name: 'a', metadata: crowded() }] })).toEqual([
      { field: 'keys[0]', message: 'must be a key' },
      { field: 'keys[1].metadata', message: 'must be an object with at most 4 entries' },
    ]);
  });

  it('is told from one with a few misspelt fields, which are named', () => {
    expect(faultsOf({ keys: [{ name: 'a', tag: ['x'] }] })).toMatchObject([{ field: 'keys[0].tag' }]);
    expect(faultsOf({ keys: [{ name: 'a', tags: null, metadata: { a: 'b' } }] })).toEqual([]);
  });
});
