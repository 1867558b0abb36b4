import { describe, expect, it } from '@jest/globals';
import { foreignImports } from './support/foreign-imports.ts';
import { withTollgate } from './support/with-tollgate.ts';

const stage = withTollgate();
const { imported, file } = foreignImports(stage);

describe('a limit of another gateway', () => {
  it('is left out if it can be none here, and each key is made at most once', async () => {
    const ratelimits = [0, 1, 2, 3, 4, 5, 6, 7, 8].map((limit) => ({ name: 'a', limit, duration: 1000 }));
    const keyId = 'key_of_many_limits';
    const plaintext = 'secret-of-another-gateway-with-limits';
    const many = await file(
      'many.json',
      JSON.stringify([
        { keyId, plaintext, ratelimits },
        { keyId, plaintext, ratelimits },
      ]),
    );
    const { report } = await imported('unkey', many);
    expect(report.keys).toEqual({ made: 1, present: 1, notCarried: 0 });
    expect(report.notCarried).toEqual([
      { what: 'limit', name: keyId, reason: expect.stringContaining('0 per 1s') },
    ]);
    const plan = await stage.tollgate.json('plans', 'show', report.plans.made[0]);
    const ids = plan.additionalLimits.map(({ limitId }: { limitId: string }) => limitId);
    expect(new Set(ids).size).toBe(7);
  });

  /** Longer than 366 days. */
  const tooLong = 400 * 86_400;

  it.each([
    [
      'tyk',
      [
        {
          key: 'a-key-of-tyk-with-a-long-quota',
          session: { alias: 'Long quota', rate: 4, per: 2, quota_max: 9, quota_renewal_rate: tooLong },
        },
      ],
      'tyk-4-2s',
    ],
    [
      'unkey',
      [
        {
          keyId: 'key_long',
          name: 'Long quota',
          plaintext: 'a-key-of-unkey-with-a-long-limit',
          ratelimits: [
            { name: 'rate', limit: 4, duration: 3000 },
            { name: 'long', limit: 9, duration: tooLong * 1000 },
          ],
        },
      ],
      'unkey-4-3s',
    ],
  ])('that is too long is left out of a key from %s, and the dry run says so', async (source, keys, plan) => {
    const path = await file(`${source}-long.json`, JSON.stringify(keys));
    for (const options of [['--dry-run'], []]) {
      const { code, report } = await imported(source, path, ...options);
      expect(code).toBe(0);
      expect(report).toMatchObject({ plans: { made: [plan] }, keys: { made: 1, notCarried: 0 } });
      const reason = `9 per ${tooLong}s can not be a limit here: it is longer than 366 days`;
      expect(report.notCarried).toEqual([{ what: 'limit', name: 'Long quota', reason }]);
    }
  });

  it('gets another id where its name is main, or is written like one before it', async () => {
    const names = ['first', 'main', 'a b', 'a-b', 'a-b-2', 'MAIN'];
    const ratelimits = names.map((name, index) => ({ name, limit: 50 - index, duration: 7000 }));
    const keys = [{ keyId: 'key_names', plaintext: 'a-key-of-unkey-whose-limits-have-names', ratelimits }];
    const { code, report } = await imported('unkey', await file('names.json', JSON.stringify(keys)));
    expect([code, report.notCarried]).toEqual([0, []]);
    const plan = await stage.tollgate.json('plans', 'show', report.plans.made[0]);
    const ids = plan.additionalLimits.map(({ limitId }: { limitId: string }) => limitId);
    expect(ids).toEqual(['main-2', 'a-b', 'a-b-2', 'a-b-2-2', 'MAIN']);
  });
});

describe('the period of a row of tollgate import csv', () => {
  it.each([
    ['60', 'it has no unit'],
    ['fortnight', 'its unit is not known'],
    ['400 days', 'it is longer than 366 days'],
  ])('keeps the row from being imported if it is %j, and the row is named', async (period, fault) => {
    const rows = [
      'name,secret,limit,window',
      `good ${period},secret-of-the-good-row-${period.replace(' ', '-')},31,hour`,
      `bad ${period},secret-of-the-bad-row-${period.replace(' ', '-')},30,${period}`,
    ];
    const path = await file('periods.csv', rows.join('\n'));
    for (const options of [['--dry-run'], []]) {
      const { code, report } = await imported('csv', path, ...options);
      expect([code, report.keys]).toEqual([1, { made: 1, present: 0, notCarried: 1 }]);
      const reason = `row 3 has a period that can be none here: ${fault}`;
      expect(report.notCarried).toEqual([{ what: 'key', name: `bad ${period}`, reason }]);
    }
  });

  it('does not matter where the row has no limit', async () => {
    const path = await file(
      'unlimited.csv',
      'name,secret,limit,window\nplain,secret-of-the-row-without-limit,,60\n',
    );
    expect(await imported('csv', path)).toMatchObject({ code: 0, report: { keys: { made: 1 } } });
  });
});
