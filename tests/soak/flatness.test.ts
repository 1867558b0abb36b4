import { describe, expect, test } from '@jest/globals';
import { flatnessOf, type Series } from './flatness.ts';

const steady = (unit: Series['unit'], value: number): Series => ({
  name: 'it',
  unit,
  values: Array.from({ length: 40 }, (_, index) => value + (index % 2)),
});

describe('what a soak calls flat', () => {
  test.each(['MB', 'count', 'bytes a row'] as const)('%s that go up and down', (unit) => {
    expect(flatnessOf(steady(unit, 150))).toEqual({ early: 150, late: 150, isFlat: true });
  });

  test.each(['MB', 'count', 'bytes a row'] as const)('not %s that never stop growing', (unit) => {
    const { name, values } = steady(unit, 150);
    const growing = values.map((value, index) => value + index * 10);
    expect(flatnessOf({ name, unit, values: growing })).toEqual({ early: 250, late: 450, isFlat: false });
  });

  test('caches that fill in the first quarter', () => {
    const values = Array.from({ length: 40 }, (_, index) => Math.min(100 + index * 20, 300));
    expect(flatnessOf({ name: 'it', unit: 'MB', values }).isFlat).toBe(true);
  });

  test('peaks of a moment', () => {
    const values = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? 30 : 30 + index * 10));
    expect(flatnessOf({ name: 'it', unit: 'count', values }).isFlat).toBe(true);
  });

  test('nothing that was measured three times', () => {
    expect(() => flatnessOf({ name: 'it', unit: 'MB', values: [1, 1, 1] })).toThrow('four');
  });
});
