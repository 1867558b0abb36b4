import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { readNumbers } from '../../../../src/storage/redis/decisions/decision-messages.ts';

describe('the reply of the decision script', () => {
  it('is read as the numbers that it was made of', () => {
    fc.assert(
      fc.property(fc.array(fc.maxSafeInteger(), { minLength: 1 }), (numbers) => {
        expect(readNumbers(numbers.join(' '))).toEqual(numbers);
      }),
    );
  });

  it.each(['', ' ', '1 ', ' 1', '1  2', '1,2', '-', '1 -', '--1', '1-2', '1e3', '1.5', 'nan', '１'])(
    'is not taken for numbers where it has another form: %j',
    (text) => {
      expect(readNumbers(text)).toBeUndefined();
    },
  );

  it.each([[null], [7], [['1']], [[1, Number.NaN]], [{}]])(
    'is not taken for numbers where it is no text: %j',
    (reply) => {
      expect(readNumbers(reply)).toBeUndefined();
    },
  );
});
