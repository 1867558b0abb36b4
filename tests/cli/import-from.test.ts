import { join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { statusOf } from '../support/burst.ts';
import { foreignImports } from './support/foreign-imports.ts';
import { runOnTerminal } from './support/run-tollgate.ts';
import { withTollgate } from './support/with-tollgate.ts';

const stage = withTollgate();
const { imported, file } = foreignImports(stage);
// Samples in the forms of each product's export; the guides of docs/ use them too.
const EXAMPLES = resolve('docs/examples');

describe('tollgate import kong', () => {
  const sample = join(EXAMPLES, 'kong.json');

  it('says in a dry run what it would make and leave, and makes nothing', async () => {
    const { code, report } = await imported('kong', sample, '--dry-run');
    expect(code).toBe(1);
    expect(report).toMatchObject({
      dryRun: true,
      plans: { made: ['kong-10-second-1000-hour'], present: [] },
      keys: { made: 3, present: 0, notCarried: 1 },
    });
    expect(report.notCarried).toEqual(
      expect.arrayContaining([
        { what: 'services', name: '1', reason: expect.any(String) },
        { what: 'consumer', name: 'no-key-auth', reason: 'has no key' },
        { what: 'key', name: 'partner', reason: expect.stringContaining('--short-keys') },
      ]),
    );
    expect(await stage.tollgate.json('keys', 'list')).toEqual([]);
    expect(await stage.tollgate.json('plans', 'list')).not.toContainEqual(
      expect.objectContaining({ rateLimitId: 'kong-10-second-1000-hour' }),
    );
  });

  it('makes keys and plans, and leaves them alone when it is run again', async () => {
    const first = await imported('kong', sample, '--short-keys');
    expect(first).toMatchObject({ code: 0, report: { keys: { made: 4, notCarried: 0 } } });
    for (const secret of ['kZ3tQ8mB5xW1nC7vR2yH6pL9sD4fG0jA', 'partner-2019'])
      expect(await statusOf(stage.url, secret)).toBe(200);
    expect((await stage.tollgate.json('limits', 'show', 'partner')).limits).toMatchObject([
      { limitId: 'main', limit: 20, period: '1s' },
      { limitId: '3600s', limit: 10000, period: '3600s' },
    ]);
    const [mobile] = await stage.tollgate.json(
      'keys',
      'list',
      '--external-id',
      'customer-42',
      '--tag',
      'ios',
    );
    expect(mobile).toMatchObject({ tags: ['eu', 'ios', 'paid'], rateLimitId: 'kong-10-second-1000-hour' });
    const again = await imported('kong', sample, '--short-keys');
    expect(again).toMatchObject({ code: 0, report: { plans: { made: [] }, keys: { made: 0, present: 4 } } });
  });

  it('reads flat entities that name their consumer, and names what it leaves', async () => {
    const flat = await file(
      'flat.yaml',
      `_format_version: "3.0"
consumers:
- {id: 5a5b9369-baeb-4faa-a902-c40ccdc2928e, username: flat, jwt_secrets: [{key: j}]}
keyauth_credentials:
- {consumer: 5a5b9369-baeb-4faa-a902-c40ccdc2928e, key: flat-secret-of-another-gateway, ttl: 60}
- {consumer: gone, key: lost-secret-of-another-gateway}
consumer_groups:
- {name: silver, consumers: [{username: flat}]}
plugins:
- {name: rate-limiting, consumer: flat, config: {minute: 5, limit_by: ip}}
- {name: rate-limiting-advanced, consumer_group: silver, config: {limit: [7], window_size: [60]}}
- {name: cors}
`,
    );
    const { code, report } = await imported('kong', flat);
    expect(code).toBe(1);
    expect(report).toMatchObject({ plans: { made: ['kong-7-60s'] }, keys: { made: 1, notCarried: 1 } });
    expect(report.notCarried.map(({ what }: { what: string }) => what).toSorted()).toEqual(
      ['jwt_secrets', 'key', 'plugin', 'plugin', 'ttl'].toSorted(),
    );
    expect(await statusOf(stage.url, 'flat-secret-of-another-gateway')).toBe(200);
  });

  it('takes no consumer for another whose name is its custom_id', async () => {
    const flat = await file(
      'names.json',
      JSON.stringify({
        consumers: [{ username: 'old shop', custom_id: 'shop-17' }, { username: 'shop-17' }],
        keyauth_credentials: [{ consumer: 'shop-17', key: 'secret-of-the-consumer-shop-17' }],
        plugins: [{ name: 'rate-limiting', consumer: 'shop-17', config: { minute: 17 } }],
      }),
    );
    const { report } = await imported('kong', flat);
    expect(report).toMatchObject({
      plans: { made: ['kong-17-minute'] },
      keys: { made: 1, present: 0, notCarried: 0 },
      notCarried: [{ what: 'consumer', name: 'old shop', reason: 'has no key' }],
    });
    expect(await stage.tollgate.json('keys', 'show', 'shop-17')).toMatchObject({ externalId: null });
  });

  it('takes the limits that a consumer merges from an anchor', async () => {
    const path = await file(
      'merged.yaml',
      `_defaults: &gold
  plugins: [{ name: rate-limiting, config: { minute: 13 } }]
consumers:
- { <<: *gold, username: merging, keyauth_credentials: [{ key: secret-of-the-merging-consumer }] }
`,
    );
    const { code, report } = await imported('kong', path, '--dry-run');
    expect([code, report.plans.made, report.notCarried]).toEqual([0, ['kong-13-minute'], []]);
  });

  it('shows on a narrow terminal the whole reason why something is not carried over', async () => {
    const { stdout } = await runOnTerminal(['import', 'kong', sample, '--dry-run'], {
      environment: stage.tollgate.environment,
      columns: 40,
    });
    expect(stdout).toContain('not a key or a limit of a consumer');
  });

  it('takes the limits of both plugins, each from the consumer before its groups', async () => {
    const minute = (count: number) => ({ name: 'rate-limiting', config: { minute: count } });
    const hour = (count: number) => ({
      name: 'rate-limiting-advanced',
      config: { limit: [count], window_size: [3600] },
    });
    const consumer = (username: string, plugins: readonly object[]) => ({
      username,
      plugins,
      groups: [{ name: 'gold' }, { name: 'silver' }],
      keyauth_credentials: [{ key: `secret-of-the-consumer-${username}` }],
    });
    const path = await file(
      'both.json',
      JSON.stringify({
        consumers: [
          consumer('two-plugins', [minute(10), hour(100)]),
          consumer('one-plugin', [minute(11)]),
          consumer('other-plugin', [hour(102)]),
        ],
        consumer_groups: [
          { name: 'gold', plugins: [hour(101)] },
          { name: 'silver', plugins: [minute(12), hour(999)] },
        ],
      }),
    );
    const { code, report } = await imported('kong', path, '--dry-run');
    const made = ['kong-10-minute-100-3600s', 'kong-11-minute-101-3600s', 'kong-12-minute-102-3600s'];
    expect([code, report.plans.made]).toEqual([0, made]);
    expect(report.notCarried).toEqual([
      { what: 'consumer_group', name: 'one-plugin', reason: 'only the limits of its first group are used' },
    ]);
  });
});

describe('tollgate import tyk', () => {
  it('names a key that is too large to be sent', async () => {
    const keyOf = (alias: string, note: string) =>
      JSON.stringify({ key_id: `the-secret-of-the-key-${alias}`, data: { alias, meta_data: { note } } });
    const path = await file(
      'large.jsonl',
      [keyOf('small', 'x'), keyOf('large', 'x'.repeat(1_100_000))].join('\n'),
    );
    const { code, report } = await imported('tyk', path);
    expect([code, report.keys]).toEqual([1, { made: 1, present: 0, notCarried: 1 }]);
    expect(report.notCarried).toContainEqual({ what: 'key', name: 'large', reason: 'has more than 1 MiB' });
  });

  it('makes keys with the limits of their policies or their own', async () => {
    const policies = join(EXAMPLES, 'tyk-policies.json');
    const { code, report } = await imported('tyk', join(EXAMPLES, 'tyk-keys.jsonl'), '--policies', policies);
    expect(code).toBe(0);
    expect(report).toMatchObject({
      plans: { made: ['tyk-20-1s-100000-2592000s', 'tyk-5-1s-1000-86400s'] },
      keys: { made: 3 },
      notCarried: [{ what: 'expired key', name: 'Of last year' }],
    });
    expect(await stage.tollgate.json('keys', 'show', 'Partner')).toMatchObject({
      enabled: false,
      expiresAt: '2099-01-01T00:00:00Z',
    });
  });

  it('takes each limit from the policies whose partitions set it, the highest of them', async () => {
    const none = { acl: false, rate_limit: false, quota: false, per_api: false };
    const policies = await file(
      'partitioned.json',
      JSON.stringify({
        Data: [
          {
            id: 'access',
            rate: 1,
            per: 1,
            quota_max: 9,
            quota_renewal_rate: 60,
            partitions: { ...none, acl: true },
          },
          { _id: 'slow', rate: 30, per: 60, partitions: { ...none, rate_limit: true } },
          { _id: 'fast', rate: 7, per: 1, partitions: { ...none, rate_limit: true } },
        ],
        Pages: 1,
      }),
    );
    const data = { alias: 'Several policies', rate: 3, per: 1, quota_max: 50, quota_renewal_rate: 3600 };
    const keys = await file(
      'several.json',
      JSON.stringify([
        {
          key_id: 'a-key-of-tyk-with-three-policies',
          data: { ...data, apply_policies: ['access', 'slow', 'fast'] },
        },
        { key_id: 'a-key-of-tyk-with-access-alone', data: { ...data, apply_policies: ['access'] } },
      ]),
    );
    const { report } = await imported('tyk', keys, '--policies', policies, '--dry-run');
    expect(report).toMatchObject({
      plans: { made: ['tyk-7-1s-50-3600s', 'tyk-3-1s-50-3600s'] },
      notCarried: [],
    });
  });

  it('takes digests by SHA-256 alone', async () => {
    const session = { alias: 'Murmur', rate: 1, per: 1 };
    const hashed = await file('murmur.json', JSON.stringify({ key: '9ae8c5b6', session }));
    const { code, report } = await imported('tyk', hashed, '--hashed');
    expect([code, report.keys]).toEqual([1, { made: 0, present: 0, notCarried: 1 }]);
  });
});

describe('tollgate import unkey', () => {
  it('makes keys by plaintext or hash, and names the keys that have neither', async () => {
    const { code, report } = await imported('unkey', join(EXAMPLES, 'unkey-keys.json'));
    expect(code).toBe(1);
    expect(report).toMatchObject({ plans: { made: ['unkey-20-1s-100000-month'] }, keys: { made: 2 } });
    expect(report.notCarried.map(({ what }: { what: string }) => what)).toEqual([
      'permissions',
      'ratelimit',
      'refillDay',
      'key',
    ]);
    expect(await statusOf(stage.url, 'sk_live_9fKq2mV7xKz1pL6kJ3hG8fD5')).toBe(200);
    // Known by its digest, and disabled.
    const found = await stage.tollgate.run(['keys', 'find', '-o', 'json'], {
      input: 'a-key-of-unkey-that-is-hashed',
    });
    expect(JSON.parse(found.stdout)).toMatchObject({ name: expect.stringMatching(/^Partner/) });
  });
});

describe('tollgate import unkey, of a key whose identity has limits', () => {
  it('prefers a limit of the key to one of the same name of its identity', async () => {
    const limit = { id: 'rl_1', name: 'requests', limit: 9, duration: 60_000, autoApply: true };
    const identity = {
      id: 'id_1',
      externalId: 'user_1',
      ratelimits: [
        { ...limit, limit: 2 },
        { ...limit, name: 'daily', limit: 500, duration: 86_400_000 },
      ],
    };
    const keys = await file(
      'identity.json',
      JSON.stringify({
        meta: { requestId: 'req_1' },
        data: [{ keyId: 'key_1', plaintext: 'sk_of_unkey_with_an_identity', ratelimits: [limit], identity }],
        pagination: { hasMore: false },
      }),
    );
    const { report } = await imported('unkey', keys, '--dry-run');
    expect(report).toMatchObject({ plans: { made: ['unkey-9-60s-500-86400s'] }, notCarried: [] });
  });
});

describe('tollgate import unkey, of a key with credits', () => {
  it.each([
    ['none left, and no refill', { remaining: 0 }, false, 'none are left and they are not refilled'],
    ['some left, and no refill', { remaining: 1 }, true, '1 are left and are not refilled'],
    [
      'none left until the refill',
      { remaining: 0, refill: { interval: 'daily', amount: 9 } },
      true,
      undefined,
    ],
  ])('makes one that works as long as the other did: %s', async (name, credits, enabled, reason) => {
    const key = { keyId: 'key_1', name, plaintext: `sk_of_unkey_${name.replaceAll(/\W/g, '_')}`, credits };
    const { code, report } = await imported('unkey', await file('credits.json', JSON.stringify([key])));
    expect([code, report.keys.made]).toEqual([0, 1]);
    expect(await stage.tollgate.json('keys', 'show', name)).toMatchObject({ enabled });
    const left = { what: 'credits', name, reason: expect.stringContaining(reason ?? '') };
    expect(report.notCarried).toEqual(reason === undefined ? [] : [left]);
  });
});

describe('tollgate import unkey, of pages of its client', () => {
  it('reads the keys in the result of each', async () => {
    const lines = ['one', 'two'].map((word) => ({
      result: {
        meta: { requestId: 'req_1' },
        data: [{ keyId: `key_${word}`, plaintext: `sk_of_unkey_from_page_${word}` }],
        pagination: { hasMore: false },
      },
    }));
    const pages = await file('pages.jsonl', lines.map((line) => JSON.stringify(line)).join('\n'));
    const { report } = await imported('unkey', pages, '--dry-run');
    expect(report).toMatchObject({ keys: { made: 2, notCarried: 0 }, notCarried: [] });
  });
});

describe('a number of the metadata that no double holds', () => {
  const secret = 'a-key-with-a-number-that-is-long';
  const tyk = `{"key":"${secret}","session":{"rate":4,"per":2,"meta_data":{"account":12345678901234567890}}}`;

  it.each([
    ['tyk', 'JSON lines', `{}\n${tyk}\n`, 'line 2: session.meta_data.account must be a number'],
    ['tyk', 'JSON', `[${tyk}]`, '0.session.meta_data.account must be a number'],
    [
      'unkey',
      'JSON',
      `[{"keyId":"key_1","plaintext":"${secret}","meta":{"account":12345678901234567890}}]`,
      '0.meta.account must be a number',
    ],
  ])('is named, and nothing imported: %s as %s', async (source, _format, content, message) => {
    const { code, stderr } = await imported(source, await file('number.json', content));
    expect([code, stderr]).toEqual([64, expect.stringContaining(message)]);
    expect((await stage.tollgate.run(['keys', 'find'], { input: secret })).code).not.toBe(0);
  });
});

describe('tollgate import csv', () => {
  it('finds columns under their usual names, and names those it does not know', async () => {
    const { report } = await imported('csv', join(EXAMPLES, 'keys.csv'));
    expect(report).toMatchObject({
      plans: { made: ['csv-1000-hour'] },
      keys: { made: 2, notCarried: 1 },
      notCarried: [
        { what: 'column', name: 'Notes' },
        { what: 'key', name: 'Web shop' },
      ],
    });
    const keys = await stage.tollgate.json('keys', 'list', '--external-id', 'customer-42', '--tag', 'paid');
    expect(keys).toContainEqual(expect.objectContaining({ expiresAt: '2099-01-01T00:00:00Z' }));
  });
});

describe('a row of tollgate import csv', () => {
  const secretOf = (name: string) => `secret-of-the-table-${name}`;

  it.each([
    ['t', true],
    ['Yes', true],
    ['', true],
    ['f', false],
    ['n', false],
    ['OFF', false],
  ])('with %j as enabled makes a key that is enabled: %j', async (word, enabled) => {
    const name = `word-${word}`;
    const path = await file('words.csv', `name,secret,enabled\n${name},${secretOf(name)},${word}\n`);
    expect(await imported('csv', path)).toMatchObject({ code: 0, report: { keys: { made: 1 } } });
    expect(await stage.tollgate.json('keys', 'show', name)).toMatchObject({ enabled });
  });

  it('with another word as enabled, or another number of cells, is named and makes no key', async () => {
    const secret = secretOf('shifted');
    const rows = ['secret,name,enabled', `${secret},gone,revoked`, `Acme, Inc.,${secret},true`, secret];
    const path = await file('odd.csv', `${rows.join('\n')}\n`);
    for (const options of [['--dry-run'], ['--short-keys']]) {
      const { code, report, stderr } = await imported('csv', path, ...options);
      expect([code, report.keys.made]).toEqual([1, 0]);
      expect(report.notCarried).toEqual([
        {
          what: 'key',
          name: 'gone',
          reason: expect.stringContaining('row 2 has another word under enabled'),
        },
        { what: 'key', name: 'row 3', reason: 'has 4 cells where the first row has 3' },
        { what: 'key', name: 'row 4', reason: 'has 1 cells where the first row has 3' },
      ]);
      expect(JSON.stringify(report) + stderr).not.toContain(secret);
    }
  });

  it('is named by its place in the file, where there are blank lines too', async () => {
    const path = await file('blank.csv', 'name,secret\n\nwithout,\n\n\nshifted,a,b\n');
    const { report } = await imported('csv', path, '--dry-run');
    expect(report.notCarried).toMatchObject([
      { name: 'without', reason: 'row 3 has no secret' },
      { name: 'row 6', reason: 'has 3 cells where the first row has 2' },
    ]);
  });

  it('whose limit is no count is named with it, and makes no key', async () => {
    const cells = ['0', '"10,000"', 'unlimited', '-1', '1.5', '1e3', '0x10', '1000000000000000'];
    const long = secretOf('in-the-wrong-column');
    const rows = [...cells, long].map((cell, n) => `limit-${n},${secretOf(`limit-${n}`)},${cell}`);
    const path = await file('limits.csv', `name,secret,limit\n${rows.join('\n')}\n`);
    const rule = 'has a limit that is not a whole number from 1 to 999999999999999';
    for (const options of [['--dry-run'], []]) {
      const { code, report } = await imported('csv', path, ...options);
      expect([code, report.plans.made, report.keys.made]).toEqual([1, [], 0]);
      expect(report.notCarried).toEqual([
        ...cells.map((cell, n) => ({
          what: 'key',
          name: `limit-${n}`,
          reason: `row ${n + 2} ${rule}: "${cell.replaceAll('"', '')}"`,
        })),
        { what: 'key', name: `limit-${cells.length}`, reason: `row ${cells.length + 2} ${rule}` },
      ]);
    }
  });
});

describe('a dry run of tollgate import csv', () => {
  it('names the keys that the gateway rejects, with the reasons of the import itself', async () => {
    const rows = [
      `bcrypt,$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy,,`,
      `day,${'1'.repeat(64)},31/12/2030,`,
      `${'n'.repeat(256)},${'3'.repeat(64)},,`,
      `owner,${'4'.repeat(64)},,${'o'.repeat(256)}`,
      `past,${'2'.repeat(64)},2020-01-01,`,
      `usable,${'5'.repeat(64)},2099-12-31,customer-1`,
    ];
    const path = await file('rejected.csv', `name,hash,expires,customer_id\n${rows.join('\n')}\n`);
    const dry = await imported('csv', path, '--dry-run');
    expect(dry).toMatchObject({ code: 1, report: { dryRun: true, keys: { made: 1, notCarried: 5 } } });
    expect(await imported('csv', path)).toMatchObject({ code: 1, report: { ...dry.report, dryRun: false } });
  });
});

describe('tollgate import', () => {
  it.each([
    ['kong', '{"consumers":[{"username":"a","keyauth_credentials":[{"key":"SECRET"}]}]}'],
    ['tyk', '{"key":"SECRET","session":{"alias":"a"}}'],
    ['unkey', '[{"keyId":"key_a","plaintext":"SECRET"}]'],
    ['csv', 'name,secret\na,SECRET'],
  ])('from %s reads standard input where the file is -', async (source, content) => {
    const input = content.replace('SECRET', `secret-of-standard-input-${source}`);
    const { code, stdout, stderr } = await stage.tollgate.run(['import', source, '-', '-o', 'json'], {
      input,
    });
    expect([code, stderr]).toEqual([0, expect.any(String)]);
    expect(JSON.parse(stdout)).toMatchObject({ keys: { made: 1 } });
  });

  it('ends with 64 for a file of another kind, and shows none of its secrets', async () => {
    const secret = 'secret-that-must-not-be-shown';
    const broken = await file('broken', `{"key": "${secret}"\n`);
    const other = await file('other.json', `{"tokens": ["${secret}"]}`);
    for (const [source, path] of ['kong', 'tyk', 'unkey', 'csv'].flatMap((one) => [
      [one, broken] as const,
      [one, other] as const,
    ])) {
      const { code, stderr } = await imported(source, path);
      expect([source, code]).toEqual([source, 64]);
      expect(stderr).not.toContain(secret);
    }
  });

  it.each([
    ['tyk', [{ key: 'secret-that-expires-in-no-year', session: { rate: 1, per: 1, expires: 1e15 } }]],
    ['unkey', [{ keyId: 'key_1', plaintext: 'secret-that-expires-in-no-year', expires: 1e18 }]],
  ])('from %s ends with 64 where a key expires past the year 9999', async (source, keys) => {
    const { code, stderr } = await imported(source, await file('never.json', JSON.stringify(keys)));
    expect(code).toBe(64);
    expect(stderr).toContain('The file has a key that expires at 1000000000000000000 ms since 1970');
    expect(stderr).not.toContain('secret-that');
  });
});
