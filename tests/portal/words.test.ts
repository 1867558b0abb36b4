import { expect, it } from '@jest/globals';
import { formatNumber } from '../../src/console/format/numbers.ts';
import { WORDS } from '../../src/portal/words.ts';

it('each number of the sentence about requests is as the reader writes numbers', () => {
  const sentence = WORDS.portal.usage.sentence(167_126, 18_996, 3808);
  const [all, limited, failed] = [189_930, 18_996, 3808].map(formatNumber);
  expect(formatNumber(3808)).not.toBe('3808');
  expect(sentence).toBe(`${all} requests: ${limited} times limited, ${failed} failed for another reason.`);
});
