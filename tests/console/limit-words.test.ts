import { describe, expect, it } from '@jest/globals';
import { limitWords, planWords, rateWords } from '../../src/console/pages/plans/limit-words.ts';

describe('limits in words', () => {
  it('say every form of a period in plain English, and leave others as they are', () => {
    const periods = {
      second: '5 a second',
      Hours: '5 an hour',
      '15 minutes': '5 in 15 minutes',
      '15m': '5 in 15 minutes',
      '60 min': '5 in 60 minutes',
      '30s': '5 in 30 seconds',
      '7d': '5 in 7 days',
      '2weeks': '5 in 2 weeks',
      P1M: '5 a month',
      PT1M: '5 a minute',
      P1Y: '5 a year',
      PT1H30M: '5 per PT1H30M',
      constructor: '5 per constructor',
      '': '5 per ',
    };
    for (const [period, words] of Object.entries(periods))
      expect([period, rateWords({ limit: 5, period })]).toEqual([period, words]);
  });

  it('begin with the shortest period, whichever of the limits is the main one', () => {
    const burst = { limitId: 'burst', limit: 10, period: 'second' };
    expect(planWords({ limit: 500, period: 'day', additionalLimits: [burst] })).toBe(
      '10 a second and 500 a day',
    );
  });

  it('leave out limits in shadow mode, and name the customers and requests of others', () => {
    const shadow = { limitId: 'next', limit: 8, period: 'hour', mode: 'shadow' };
    const search = {
      limitId: 'search',
      limit: 2,
      period: 'minute',
      per: 'customer',
      match: [{ methods: ['GET', 'POST'], path: '/v1/search/**' }, { path: '/find' }],
    };
    expect(planWords({ limit: 5, period: 'hour', additionalLimits: [shadow, search] })).toBe(
      '5 an hour and 2 a minute for each customer at GET or POST /v1/search/** or /find',
    );
    expect(limitWords(shadow)).toBe('8 an hour, in shadow');
  });
});
