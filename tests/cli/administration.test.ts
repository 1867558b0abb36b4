import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { statusOf } from '../support/burst.ts';
import { until } from '../support/until.ts';
import { withTollgate } from './support/with-tollgate.ts';

const stage = withTollgate({ USAGE_FLUSH_MS: '100' });

describe('tollgate keys', () => {
  it('makes a key with everything that its options say', async () => {
    await stage.tollgate.text('plans', 'create', 'made', '--limit', '5', '--period', 'hour');
    const words = ['--plan', 'made', '--tag', 'a', '--tag', 'b', '--expires', '30d', '--external-id', 'acme'];
    const more = ['--metadata', '{"team":"x"}', '--allowed-ip', '127.0.0.0/8', '--override', 'main=7@1d'];
    const made = await stage.tollgate.json('keys', 'create', 'full', ...words, ...more);
    expect(await statusOf(stage.url, made.secret)).toBe(200);
    expect(await stage.tollgate.json('keys', 'show', made.id)).toMatchObject({
      name: 'full',
      rateLimitId: 'made',
      tags: ['a', 'b'],
      externalId: 'acme',
      metadata: { team: 'x' },
      allowedIps: ['127.0.0.0/8'],
      overrides: { main: { limit: 7 } },
      expiresAt: expect.stringMatching(/^\d{4}-.*Z$/),
      usage: { totalRequests: 1 },
    });
  });

  it('makes a key of the fields in a file, over which options have precedence', async () => {
    const file = join(stage.directory, 'key.yaml');
    await writeFile(file, 'tags: [filed]\nexternalId: of-file\n');
    const { id } = await stage.tollgate.json(
      'keys',
      'create',
      'filed',
      '-f',
      file,
      '--external-id',
      'of-option',
    );
    expect(await stage.tollgate.json('keys', 'show', id)).toMatchObject({
      tags: ['filed'],
      externalId: 'of-option',
    });
  });

  it('writes a secret to a new file that only its owner can read, and nowhere else', async () => {
    const file = join(stage.directory, 'secret');
    const made = await stage.tollgate.text('keys', 'create', 'kept', '--secret-file', file);
    const secret = (await readFile(file, 'utf8')).trim();
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(made).not.toContain(secret);
    expect(await statusOf(stage.url, secret)).toBe(200);
    const again = await stage.tollgate.run(['keys', 'create', 'not made', '--secret-file', file]);
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('it is there already') });
    expect(await stage.tollgate.json('keys', 'list', '--all')).not.toContainEqual(
      expect.objectContaining({ name: 'not made' }),
    );
  });

  it('leaves no file behind where no key was made', async () => {
    const file = join(stage.directory, 'unused');
    const words = ['keys', 'create', 'x', '--plan', 'missing', '--secret-file', file];
    expect((await stage.tollgate.run(words)).code).toBe(4);
    await expect(stat(file)).rejects.toThrow('ENOENT');
  });

  it('reads a secret, and leaves an audit entry, only with --reveal', async () => {
    const { id, secret } = await stage.tollgate.json('keys', 'create', 'hidden');
    const entries = () => stage.tollgate.json('audit', '--target', id, '--action', 'key.show-secret');
    expect(await stage.tollgate.text('keys', 'show', id)).not.toContain(secret);
    expect(await entries()).toEqual([]);
    expect(await stage.tollgate.json('keys', 'show', id, '--reveal')).toMatchObject({ secret });
    expect(await entries()).toHaveLength(1);
  });

  it('changes, disables, enables and deletes a key by its name', async () => {
    const { id, secret } = await stage.tollgate.json(
      'keys',
      'create',
      'Mobile app',
      '--tag',
      'a',
      '--expires',
      '1d',
    );
    const changed = await stage.tollgate.json(
      ...['keys', 'update', 'Mobile app', '--clear', 'expires', '--add-tag', 'b', '--remove-tag', 'a'],
    );
    expect(changed).toMatchObject({ consumerApiKeyId: id, expiresAt: null, tags: ['b'] });
    await stage.tollgate.text('keys', 'disable', 'Mobile app', '--yes');
    expect(await statusOf(stage.url, secret)).toBe(401);
    await stage.tollgate.text('keys', 'enable', 'Mobile app');
    expect(await statusOf(stage.url, secret)).toBe(200);
    await stage.tollgate.text('keys', 'delete', 'Mobile app', '--yes');
    expect(await statusOf(stage.url, secret)).toBe(401);
    expect((await stage.tollgate.run(['keys', 'show', 'Mobile app'])).code).toBe(4);
  });

  it.each([
    [
      'an end that is set and cleared',
      ['update', 'x', '--expires', '30d', '--clear', 'expires'],
      'expires takes',
    ],
    ['tags that are set and cleared', ['update', 'x', '--tag', 'a', '--clear', 'tags'], 'tags takes away'],
    ['an unknown field to clear', ['update', 'x', '--clear', 'constructor'], 'takes one of plan, expires'],
    [
      'two overrides of a limit',
      ['create', 'x', '--override', 'main=5@1d', '--override', 'main=4'],
      'main twice',
    ],
  ])('rejects %s', async (_what, words, rule) => {
    const ended = await stage.tollgate.run(['keys', ...words]);
    expect(ended).toMatchObject({ code: 64, stderr: expect.stringContaining(rule) });
  });

  it('destroys nothing without --yes and a terminal, nor in a dry run', async () => {
    const { id } = await stage.tollgate.json('keys', 'create', 'careful');
    for (const command of ['delete', 'disable']) {
      const unasked = await stage.tollgate.run(['keys', command, id]);
      expect(unasked).toMatchObject({ code: 64, stderr: expect.stringContaining('--yes') });
      const dry = await stage.tollgate.run(['keys', command, id, '--dry-run', '--yes']);
      expect(dry).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('careful') });
    }
    expect(await stage.tollgate.json('keys', 'show', id)).toMatchObject({ enabled: true });
  });

  it('lists the keys that share a name instead of taking one of them', async () => {
    const ids = [];
    for (let index = 0; index < 2; index += 1)
      ids.push((await stage.tollgate.json('keys', 'create', 'twin')).id as string);
    const { code, stderr } = await stage.tollgate.run(['keys', 'delete', 'twin', '--yes']);
    expect(code).toBe(5);
    for (const id of ids) expect(stderr).toContain(id);
  });

  it('follows the pages of a list, and says so where there are more', async () => {
    for (const name of ['p1', 'p2', 'p3'])
      await stage.tollgate.text('keys', 'create', name, '--tag', 'paged');
    const page = await stage.tollgate.run(['keys', 'list', '--tag', 'paged', '--limit', '2', '-o', 'id']);
    expect(page.stdout.trim().split('\n')).toHaveLength(2);
    const [, cursor = ''] = /--cursor (\S+)/.exec(page.stderr) ?? [];
    const rest = await stage.tollgate.text('keys', 'list', '--tag', 'paged', '--cursor', cursor, '-o', 'id');
    const all = await stage.tollgate.text(
      'keys',
      'list',
      '--tag',
      'paged',
      '--limit',
      '2',
      '--all',
      '-o',
      'id',
    );
    expect(all).toBe(page.stdout + rest);
    expect(await stage.tollgate.json('keys', 'list', '--tag', 'paged', '--tag', 'other')).toEqual([]);
  });

  it('searches, filters and sorts a list', async () => {
    for (const name of ['findable b', 'findable a']) await stage.tollgate.text('keys', 'create', name);
    await stage.tollgate.text('keys', 'disable', 'findable b', '--yes');
    const names = async (...words: readonly string[]) =>
      (await stage.tollgate.json('keys', 'list', '--search', 'findable', ...words)).map(
        (key: { name: string }) => key.name,
      );
    expect(await names('--sort', 'name', '--order', 'asc')).toEqual(['findable a', 'findable b']);
    expect(await names('--status', 'disabled')).toEqual(['findable b']);
  });

  it('keeps the reason of a change for the audit log', async () => {
    const { id } = await stage.tollgate.json('keys', 'create', 'audited', '--reason', 'Grüße');
    expect(
      await stage.tollgate.json('keys', 'update', id, '--tag', 't', '--reason', 'why — because'),
    ).toMatchObject({
      tags: ['t'],
    });
    const long = await stage.tollgate.run(['keys', 'update', id, '--tag', 'u', '--reason', 'x'.repeat(257)]);
    expect(long).toMatchObject({ code: 64, stderr: expect.stringContaining('256') });
    const coloured = await stage.tollgate.run([
      'keys',
      'update',
      id,
      '--tag',
      'u',
      '--reason',
      '\u001b[31mred',
    ]);
    expect([coloured.code, coloured.stderr]).toEqual([
      64,
      'The reason must be one line without control characters.\n',
    ]);
  });
});

describe('tollgate plans', () => {
  it('makes, lists, shows, changes, applies and deletes a plan', async () => {
    const words = ['--limit', '100', '--period', 'hour', '--description', 'For partners'];
    expect(await stage.tollgate.json('plans', 'create', 'gold', ...words)).toMatchObject({
      rateLimitId: 'gold',
      limit: 100,
    });
    expect((await stage.tollgate.text('plans', 'list', '-o', 'id')).split('\n')).toContain('gold');
    expect(await stage.tollgate.json('plans', 'update', 'gold', '--limit', '200')).toMatchObject({
      limit: 200,
    });
    await stage.tollgate.text('keys', 'create', 'bound');
    expect(await stage.tollgate.json('plans', 'apply', 'gold', 'bound')).toEqual([
      expect.objectContaining({ rateLimitId: 'gold', limit: 200 }),
    ]);
    const inUse = await stage.tollgate.run(['plans', 'delete', 'gold', '--yes']);
    expect(inUse).toMatchObject({ code: 5, stderr: expect.stringMatching(/bound/) });
    await stage.tollgate.text('keys', 'update', 'bound', '--clear', 'plan');
    await stage.tollgate.text('plans', 'delete', 'gold', '--yes');
    expect((await stage.tollgate.run(['plans', 'show', 'gold'])).code).toBe(4);
  });

  it('moves the keys of a deleted plan to another one', async () => {
    for (const plan of ['old', 'next'])
      await stage.tollgate.text('plans', 'create', plan, '--limit', '1', '--period', 'day');
    const { id } = await stage.tollgate.json('keys', 'create', 'moved', '--plan', 'old');
    await stage.tollgate.text('plans', 'delete', 'old', '--rebind-to', 'next', '--yes');
    expect(await stage.tollgate.json('keys', 'show', id)).toMatchObject({ rateLimitId: 'next' });
  });

  it('takes all of a plan from standard input', async () => {
    const plan = {
      limit: 10,
      period: 'minute',
      additionalLimits: [{ limitId: 'burst', limit: 2, period: 'second' }],
    };
    const { code } = await stage.tollgate.run(['plans', 'create', 'piped', '-f', '-'], {
      input: JSON.stringify(plan),
    });
    expect(code).toBe(0);
    expect(await stage.tollgate.json('plans', 'show', 'piped')).toMatchObject(plan);
  });

  it('names each field that breaks its rule', async () => {
    const bad = await stage.tollgate.run(['plans', 'create', 'bad', '--limit', '0', '--period', 'fortnight']);
    expect(bad).toMatchObject({ code: 64, stderr: expect.stringMatching(/\n {2}limit: .*\n {2}period: /) });
  });
});

describe('tollgate limits', () => {
  it('shows, resets and grants the live counters of a key', async () => {
    await stage.tollgate.text('plans', 'create', 'two', '--limit', '2', '--period', 'day');
    const { secret } = await stage.tollgate.json('keys', 'create', 'limited', '--plan', 'two');
    for (const status of [200, 200, 429]) expect(await statusOf(stage.url, secret)).toBe(status);
    expect((await stage.tollgate.json('limits', 'show', 'limited')).limits).toEqual([
      expect.objectContaining({ limitId: 'main', used: 2, remaining: 0 }),
    ]);
    await stage.tollgate.text('limits', 'grant', 'limited', '1', '--reason', 'launch');
    for (const status of [200, 429]) expect(await statusOf(stage.url, secret)).toBe(status);
    await stage.tollgate.text('limits', 'reset', 'limited', '--yes');
    expect(await statusOf(stage.url, secret)).toBe(200);
    expect(
      (await stage.tollgate.run(['limits', 'reset', 'limited', '--limit-id', 'none', '--yes'])).code,
    ).toBe(4);
  });
});

describe('tollgate usage', () => {
  it('shows the series of a key and of all keys in groups', async () => {
    const { id, secret } = await stage.tollgate.json('keys', 'create', 'counted');
    for (let index = 0; index < 3; index += 1) await statusOf(stage.url, secret);
    const series = await stage.tollgate.json(
      'keys',
      'usage',
      'counted',
      '--from',
      '7d',
      '--interval',
      'total',
    );
    expect(series).toMatchObject({ interval: 'total', rows: [{ requests: 3, successful: 3 }] });
    const csv = await stage.tollgate.text('usage', '--interval', 'total', '--group-by', 'key', '-o', 'csv');
    expect(csv.split('\n')[0]).toMatch(/^start,consumerApiKeyId,consumerApiKeyName,requests,/);
    const table = await stage.tollgate.text('keys', 'usage', 'counted', '--interval', 'total', '-o', 'table');
    expect(table.split('\n')[0]).toMatch(
      /^START +REQUESTS +SUCCESSFUL +FAILED +LIMITED +4XX +5XX +SHADOW +MEAN MS$/,
    );
    const bad = await stage.tollgate.run(['usage', '--interval', 'fortnight']);
    expect(bad.code).toBe(64);
    expect(id).toMatch(/^key_/);
  });

  it('has the same columns as CSV where there are no rows', async () => {
    const words = ['usage', '--tag', 'absent', '--group-by', 'rateLimit, key', '-o', 'csv'];
    expect(await stage.tollgate.text(...words)).toMatch(
      /^start,consumerApiKeyId,consumerApiKeyName,rateLimitId,requests,[^\n]*\n$/,
    );
  });

  it('shows the busiest groups first, and the others last', async () => {
    for (const [name, count] of Object.entries({ calm: 2, second: 3, busiest: 5, idle: 2 })) {
      const { secret } = await stage.tollgate.json('keys', 'create', name, '--tag', 'ranked');
      for (let index = 0; index < count; index += 1) await statusOf(stage.url, secret);
    }
    const columns = ['usage', '--interval', 'total', '--group-by', 'key', '--tag', 'ranked'];
    // The series of all keys has what was moved to Postgres.
    await until(async () => {
      const { rows } = await stage.tollgate.json(...columns);
      return rows.reduce((sum: number, { requests }: { requests: number }) => sum + requests, 0) === 12;
    });
    const { rows } = await stage.tollgate.json(...columns, '--top', '2');
    expect(rows).toMatchObject([
      { consumerApiKeyName: 'busiest', requests: 5 },
      { consumerApiKeyName: 'second', requests: 3 },
      { consumerApiKeyId: '__other__', requests: 4 },
    ]);
  });
});

describe('the pages of a list since a time ago', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it('are of one span, although time goes on between them', async () => {
    const owned = ['read on', '--external-id', 'reader'];
    const { id, secret } = await stage.tollgate.json('keys', 'create', ...owned);
    await stage.tollgate.text('keys', 'disable', 'read on', '--yes');
    await stage.tollgate.text('keys', 'enable', 'read on');
    for (const path of ['/a', '/b', '/c']) await statusOf(`${stage.url}${path}`, secret);
    const groups = ['--interval', 'total', '--group-by', 'endpoint'];
    const ofAll = ['usage', '--external-id', 'reader', ...groups];
    await until(async () => (await stage.tollgate.json(...ofAll)).rows.length === 3);
    passSecondsWithEachRequest();
    for (const command of [ofAll, ['keys', 'usage', 'read on', ...groups], ['audit', '--target', id]]) {
      const list = [...command, '--from', '7d', '-o', 'id'];
      const whole = await stage.tollgate.text(...list);
      expect(whole.trim().split('\n')).toHaveLength(3);
      expect(await stage.tollgate.text(...list, '--limit', '1', '--all')).toBe(whole);
      const { stdout, stderr } = await stage.tollgate.run([...list, '--limit', '2']);
      const [, next = ''] = /or (--.+) the next page/.exec(stderr) ?? [];
      expect(stdout + (await stage.tollgate.text(...list, ...next.split(' ')))).toBe(whole);
    }
  });
});

function passSecondsWithEachRequest(): void {
  const [{ now }, { fetch: send }] = [Date, globalThis];
  let passedMs = 0;
  jest.spyOn(Date, 'now').mockImplementation(() => now() + passedMs);
  jest.spyOn(globalThis, 'fetch').mockImplementation((...request) => {
    passedMs += 5000;
    return send(...request);
  });
}
