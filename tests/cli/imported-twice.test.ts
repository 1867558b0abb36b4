import { createHash } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { foreignImports } from './support/foreign-imports.ts';
import { withTollgate } from './support/with-tollgate.ts';

const stage = withTollgate();
const { imported, file } = foreignImports(stage);
const SECRET = 'one-secret-of-several-rows';
const digest = (encoding: 'hex' | 'base64') => createHash('sha256').update(SECRET).digest(encoding);

it('a secret that a file has twice is imported once, and the later key is named', async () => {
  const rows = [
    'name,secret,hash,limit,period',
    `first,${SECRET},,5,hour`,
    `first,${SECRET},,5,hour`,
    `equal,${SECRET},,900,hour`,
    `in hex,,${digest('hex').toUpperCase()},901,hour`,
    `in base64,,${digest('base64')},902,hour`,
  ];
  const path = await file('twice.csv', `${rows.join('\n')}\n`);
  const notCarried = ['equal', 'in hex', 'in base64'].map((name) => ({
    ...{ what: 'key', name, reason: 'has the secret of first, which comes before it' },
  }));
  for (const options of [['--dry-run'], []]) {
    const { code, report } = await imported('csv', path, ...options);
    expect(code).toBe(1);
    expect(report).toMatchObject({
      plans: { made: ['csv-5-hour'], present: [] },
      keys: { made: 1, present: 1, notCarried: 3 },
      notCarried,
    });
  }
  const { report } = await imported('csv', path);
  expect(report.keys).toEqual({ made: 0, present: 2, notCarried: 3 });
});
