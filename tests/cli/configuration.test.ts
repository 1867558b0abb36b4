import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse as parseCsv } from 'csv-parse/sync';
import { parse } from 'yaml';
import { readConfigurationFile } from '../../src/app/configuration-file.ts';
import { statusOf } from '../support/burst.ts';
import { runInProcess } from './support/run-in-process.ts';
import { runOnTerminal, WITH_FULL_DISK } from './support/run-tollgate.ts';
import { withTollgate } from './support/with-tollgate.ts';

const stage = withTollgate();

let files = 0;

/** A file with the content, and an owner of its own. */
async function fileWith(content: string): Promise<{ readonly file: string; readonly owner: string }> {
  files += 1;
  const file = join(stage.directory, `gateway-${files}.yaml`);
  await writeFile(file, content);
  return { file, owner: `owner-${files}` };
}

function yamlOf(prefix: string, limit = 10): string {
  return `
plans:
  - rateLimitId: ${prefix}-gold
    limit: ${limit}
    period: hour
keys:
  - externalId: ${prefix}-app
    name: Mobile app
    rateLimitId: ${prefix}-gold
`;
}

describe('tollgate config apply', () => {
  it('makes what the file says with secrets that work, then has nothing to change', async () => {
    const { file, owner } = await fileWith(yamlOf('a'));
    const applied = await stage.tollgate.json('config', 'apply', file, '--owner', owner, '--yes');
    expect(applied.summary).toEqual({ create: 2, update: 0, delete: 0, unchanged: 0 });
    expect(await statusOf(stage.url, applied.secrets[0].secret)).toBe(200);
    const again = await stage.tollgate.run([
      'config',
      'apply',
      file,
      '--owner',
      owner,
      '--yes',
      '-o',
      'json',
    ]);
    expect(again).toMatchObject({ code: 0, stderr: 'There was nothing to change.\n' });
    expect(JSON.parse(again.stdout)).toMatchObject({ changes: [], secrets: [] });
  });

  it('reads JSON with a byte order mark', async () => {
    const { file, owner } = await fileWith('\ufeff{"plans": []}');
    await stage.tollgate.text('config', 'apply', file, '--owner', owner, '--yes');
  });

  it('writes new secrets only to a file of mode 600, and no file where there are none', async () => {
    const { file, owner } = await fileWith(yamlOf('b'));
    const secrets = join(stage.directory, 'secrets.ndjson');
    const words = ['config', 'apply', file, '--owner', owner, '--yes', '--secret-file', secrets];
    const { code, stdout, stderr } = await stage.tollgate.run(words);
    expect(code).toBe(0);
    const kept = JSON.parse(await readFile(secrets, 'utf8'));
    expect(kept).toMatchObject({ externalId: 'b-app' });
    expect(stdout + stderr).not.toContain(kept.secret);
    expect((await stat(secrets)).mode & 0o777).toBe(0o600);
    expect(await statusOf(stage.url, kept.secret)).toBe(200);
    expect((await stage.tollgate.run(words)).code).toBe(1);
    await rm(secrets);
    expect((await stage.tollgate.run(words)).code).toBe(0);
    await expect(stat(secrets)).rejects.toThrow('ENOENT');
  });

  it('shows new secrets on standard error where the disk is full', async () => {
    const { file, owner } = await fileWith(yamlOf('full'));
    const secrets = join(stage.directory, 'full-disk.ndjson');
    const words = ['config', 'apply', file, '--owner', owner, '--yes', '--secret-file', secrets];
    const { code, stderr } = await stage.tollgate.run(words, { shellLine: WITH_FULL_DISK });
    expect(code).toBe(1);
    const shown = JSON.parse(stderr.trimEnd().split('\n')[1] ?? '');
    expect(shown).toMatchObject({ externalId: 'full-app' });
    expect(await statusOf(stage.url, shown.secret)).toBe(200);
    await expect(stat(secrets)).rejects.toThrow('ENOENT');
  });

  it.each(['table', 'csv', 'ndjson', 'yaml'])('shows the secrets of new keys as %s', async (format) => {
    const { file, owner } = await fileWith(yamlOf(`format-${format}`));
    const text = await stage.tollgate.text('config', 'apply', file, '--owner', owner, '--yes', '-o', format);
    expect(text).toMatch(/tg_[0-9A-Za-z]{36}/);
  });

  it('shows changes and secrets as one table in CSV, and as lines of one shape in NDJSON', async () => {
    const applied = async (prefix: string, format: string): Promise<string> => {
      const webhook = `{externalId: ${prefix}-hook, url: https://8.8.8.8/, events: [tollgate.plan.created]}`;
      const { file, owner } = await fileWith(`${yamlOf(prefix)}webhooks: [${webhook}]\n`);
      return stage.tollgate.text('config', 'apply', file, '--owner', owner, '--yes', '-o', format);
    };
    const rows = parseCsv<Record<string, string>>(await applied('csv', 'csv'), { columns: true });
    const lines = (await applied('ndjson', 'ndjson')).trim().split('\n');
    const changes = lines.map((line) => JSON.parse(line));
    expect(rows.map(({ type, secret }) => [type, secret])).toEqual([
      ['plan', ''],
      ['key', expect.stringMatching(/^tg_/)],
      ['webhook', expect.stringMatching(/^whsec_/)],
    ]);
    expect(rows.map(({ recordId }) => recordId?.slice(0, 4))).toEqual(['', 'key_', 'whk_']);
    expect(changes).toEqual([
      expect.objectContaining({ type: 'plan', action: 'create' }),
      expect.objectContaining({ type: 'key', secret: expect.stringMatching(/^tg_/) }),
      expect.objectContaining({ type: 'webhook', secret: expect.stringMatching(/^whsec_/) }),
    ]);
  });

  it('has the ids of keys in CSV also where a file has the secrets, or none is made', async () => {
    const { file, owner } = await fileWith(yamlOf('ids'));
    const words = ['config', 'apply', file, '--owner', owner, '--yes', '-o', 'csv'];
    const made = await stage.tollgate.text(...words, '--secret-file', join(stage.directory, 'ids.ndjson'));
    const [{ consumerApiKeyId: id }] = await stage.tollgate.json('keys', 'list', '--external-id', 'ids-app');
    await writeFile(file, yamlOf('ids').replace('Mobile app', 'Renamed app'));
    const changed = await stage.tollgate.text(...words);
    const header = 'action,type,id,conflict,fields,recordId,secret';
    expect(made.split(/\r?\n/)).toEqual([
      header,
      expect.stringMatching(/^create,plan,ids-gold,.*,,$/),
      expect.stringMatching(`^create,key,ids-app,.*,${id},$`),
      '',
    ]);
    expect(changed.split(/\r?\n/)).toEqual([
      header,
      expect.stringMatching(`^update,key,ids-app,.*,${id},$`),
      '',
    ]);
  });

  it('asks without a terminal for --yes, and does nothing in a dry run', async () => {
    const { file, owner } = await fileWith(yamlOf('c'));
    const unasked = await stage.tollgate.run(['config', 'apply', file, '--owner', owner]);
    expect(unasked).toMatchObject({ code: 64, stderr: expect.stringContaining('2 to create') });
    const dry = await stage.tollgate.run([
      'config',
      'apply',
      file,
      '--owner',
      owner,
      '--dry-run',
      '-o',
      'id',
    ]);
    expect(dry.code).toBe(64);
    const dryTable = await stage.tollgate.run(['config', 'apply', file, '--owner', owner, '--dry-run']);
    const said = expect.stringContaining(`Dry run on ${stage.url}: 2 to create`);
    expect(dryTable).toMatchObject({ code: 0, stderr: said });
    expect(await stage.tollgate.json('keys', 'list', '--search', 'c-app')).toEqual([]);
  });

  it('shows on a terminal what it is about to do, and asks', async () => {
    const { file, owner } = await fileWith(yamlOf('d'));
    const environment = stage.tollgate.environment;
    const words = ['config', 'apply', file, '--owner', owner];
    const refused = await runOnTerminal(words, { environment, input: 'n\n' });
    expect(refused.code).toBe(1);
    expect(refused.stdout).toContain('create plan d-gold');
    // A secret is shown only this once: a narrow terminal does not cut it off.
    const agreed = await runOnTerminal(words, { environment, input: 'y\n', columns: 40 });
    expect(agreed.code).toBe(0);
    expect(agreed.stdout).toMatch(/tg_[0-9A-Za-z]{36}/);
  });

  it('prunes and takes over only with the options for it, and names conflicts', async () => {
    const { file, owner } = await fileWith(yamlOf('e'));
    await stage.tollgate.text('config', 'apply', file, '--owner', owner, '--yes');
    const conflict = await stage.tollgate.run([
      'config',
      'apply',
      file,
      '--owner',
      `${owner}-other`,
      '--yes',
    ]);
    expect(conflict).toMatchObject({ code: 5, stderr: expect.stringContaining('key e-app: other owner') });
    await stage.tollgate.text('config', 'apply', file, '--owner', `${owner}-other`, '--yes', '--force');
    const { file: empty } = await fileWith('plans: []\nkeys: []\n');
    const kept = await stage.tollgate.json('config', 'apply', empty, '--owner', owner, '--yes', '--prune');
    expect(kept.changes).toEqual([]);
    const pruned = await stage.tollgate.json(
      'config',
      'apply',
      empty,
      '--owner',
      `${owner}-other`,
      '--yes',
      '--prune',
    );
    expect(pruned.summary).toMatchObject({ delete: 2 });
  });

  it('reads standard input, and lists the faults of a file by their paths', async () => {
    const input = yamlOf('f', 0).replace('name: Mobile app', 'expires_at: 2030-01-01T00:00:00Z');
    const { code, stderr } = await stage.tollgate.run(['config', 'apply', '-', '--yes'], { input });
    expect(code).toBe(64);
    expect(stderr).toContain('  plans[0].limit: must be an integer');
    expect(stderr).toContain(
      '  keys[0].expires_at: is not a field that is known here. Did you mean "expiresAt"?',
    );
    expect(stderr).toContain('  keys[0].name: is required');
  });
});

describe('tollgate config diff', () => {
  it('ends with 2 where there are differences, although its reader has left', async () => {
    // More than a pipe holds, so that the command still writes when the reader has gone.
    const plans = Array.from({ length: 1000 }, (_, index) => ({
      ...{ rateLimitId: `a-plan-with-a-long-name-${index}`, limit: 1, period: 'hour' },
    }));
    const { file, owner } = await fileWith(JSON.stringify({ plans }));
    const shellLine = '{ "$@"; echo "code $?" >&2; } | head -c 1';
    const words = ['config', 'diff', file, '--owner', owner, '-o', 'json'];
    expect(await stage.tollgate.run(words, { shellLine })).toMatchObject({
      stderr: expect.stringMatching(/\ncode 2\n$/),
    });
  });

  it('ends with 2 where something differs and with 0 where nothing does', async () => {
    const { file, owner } = await fileWith(yamlOf('g'));
    const words = ['config', 'diff', file, '--owner', owner];
    const before = await stage.tollgate.run([...words, '-o', 'json']);
    expect(before.code).toBe(2);
    const { digest, summary } = JSON.parse(before.stdout);
    expect(summary).toMatchObject({ create: 2 });
    const apply = ['config', 'apply', file, '--owner', owner, '--yes', '--expect-digest'];
    expect((await stage.tollgate.run([...apply, '0'.repeat(64)])).code).toBe(5);
    expect((await stage.tollgate.run([...apply, digest])).code).toBe(0);
    for (const option of ['--yes', '--dry-run'])
      expect(await stage.tollgate.run([...apply, digest, option])).toMatchObject({
        code: 5,
        stderr: expect.stringContaining('nothing left to change: they may have been applied already'),
      });
    expect(await stage.tollgate.run(words)).toMatchObject({
      code: 0,
      stderr: 'There is nothing to change.\n',
    });
    await writeFile(file, yamlOf('g', 20));
    const table = await stage.tollgate.run([...words, '-o', 'table']);
    expect(table).toMatchObject({ code: 2, stdout: expect.stringContaining('limit 10 → 20') });
    const narrow = await runOnTerminal(words, { environment: stage.tollgate.environment, columns: 40 });
    expect(narrow).toMatchObject({ code: 2, stdout: expect.stringContaining('limit 10 → 20') });
  });
});

describe('tollgate config export', () => {
  it('prints a file that changes nothing when it is applied', async () => {
    const { file, owner } = await fileWith(yamlOf('h'));
    await stage.tollgate.text('config', 'apply', file, '--owner', owner, '--yes');
    const exported = await stage.tollgate.text('config', 'export', '--owner', owner);
    expect(parse(exported)).toEqual({
      plans: [{ rateLimitId: 'h-gold', description: '', limit: 10, period: 'hour' }],
      keys: [{ externalId: 'h-app', name: 'Mobile app', rateLimitId: 'h-gold' }],
    });
    const { file: copy } = await fileWith(exported);
    expect((await stage.tollgate.run(['config', 'diff', copy, '--owner', owner, '--prune'])).code).toBe(0);
    expect(await stage.tollgate.json('config', 'export', '--owner', owner)).toEqual(parse(exported));
  });

  it('says how many keys it leaves out', async () => {
    await stage.tollgate.text('keys', 'create', 'without an externalId');
    const { code, stderr } = await stage.tollgate.run(['config', 'export']);
    expect(code).toBe(0);
    expect(stderr).toMatch(/left out, without an externalId of their own: \d+\./);
    expect((await stage.tollgate.run(['config', 'export', '-o', 'csv'])).code).toBe(64);
  });
});

describe('tollgate config validate', () => {
  const validate = async (content: string) => {
    const { file } = await fileWith(content);
    return runInProcess(['config', 'validate', file], {});
  };

  it('needs no gateway', async () => {
    expect(await validate(yamlOf('x'))).toEqual({
      code: 0,
      stdout: '',
      stderr: 'The configuration is valid (plans: 1, keys: 1, webhooks: 0).\n',
    });
    expect(await validate(JSON.stringify({ $schema: 'configuration.json', keys: [] }))).toMatchObject({
      code: 0,
    });
  });

  it('asks a gateway for what only that can know', async () => {
    const content = 'keys:\n  - {externalId: a, name: n, rateLimitId: none}\n';
    expect((await validate(content)).code).toBe(0);
    const asked = await stage.tollgate.run(['config', 'validate', '-', '--gateway'], { input: content });
    expect(asked).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('  keys[0].rateLimitId: must be'),
    });
    expect(
      (await stage.tollgate.run(['config', 'validate', '-', '--gateway'], { input: yamlOf('y') })).code,
    ).toBe(0);
  });

  it.each<readonly [string, string, RegExp]>([
    ['an empty file', '', /the file: must be a JSON object/],
    ['a list', '- a\n', /the file: must be a JSON object/],
    ['a list without entries', 'keys:\n', /keys: must be a list/],
    ['a tab', 'keys:\n\t- a: 1\n', /line 2, column \d+: /],
    ['a field that is there twice', 'keys: []\nkeys: []\n', /line 2, column 1: Map keys must be unique/],
    ['two documents', 'keys: []\n---\nkeys: []\n', /line 2, column \d+: The file has more than one document/],
    [
      'aliases that stand for more than any memory',
      [
        'a: &a [x, x, x, x, x, x, x, x, x]',
        ...['b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'].map(
          (name, index) => `${name}: &${name} [${Array(9).fill(`*${'abcdefgh'[index]}`).join(', ')}]`,
        ),
      ].join('\n'),
      /aliases/,
    ],
    ['an alias of nothing', 'keys: *a\n', /alias/i],
    ['a tag of another program', 'keys:\n- externalId: !env a\n', /line 2, column 15: The tag is not known/],
    ['tags of another program', 'keys: !reference [.base, keys]\n', /line 1, column 7: The tag is not known/],
    ['a merge of a list', 'keys:\n- <<: [a]\n', /a merge \(<<\) takes maps alone/],
    ['a merge with itself', 'keys:\n- &a\n  <<: *a\n', /alias/],
    ['an alias of itself', 'keys: &a [*a]\n', /aliases stand for .* themselves/],
    [
      'two keys with one externalId',
      `keys: [${'{externalId: a, name: n},'.repeat(2)}]`,
      /keys\[1\]\.externalId: must not be the same as that of keys\[0\]/,
    ],
    [
      'an infinite number',
      'plans: [{rateLimitId: a, limit: .inf, period: day}]',
      /plans\[0\]\.limit: must be/,
    ],
    [
      'a hash that is none',
      'keys: [{externalId: a, name: n, secretHash: {algorithm: sha256, value: abc}}]',
      /keys\[0\]\.secretHash\.value: /,
    ],
  ])('names %s', async (_what, content, fault) => {
    const { code, stderr } = await validate(content);
    expect(stderr).toMatch(fault);
    expect(code).toBe(64);
    expect(stderr).not.toContain('    at ');
  });

  it.each<readonly [string, string, RegExp]>([
    ['an alias of itself', 'keys: &a [*a]\n', /aliases stand for .* themselves/],
    ['a JSON member that is there twice', '{"keys": [],\n "keys": []}', /line 2, column 2: Map keys must be/],
    ['where the syntax is wrong', '{"keys": [\n}', /line 2, column 1: /],
  ])('names %s also where the file is sent to a gateway', async (_what, input, fault) => {
    for (const words of [['diff'], ['apply', '--yes'], ['validate']]) {
      const { code, stderr } = await stage.tollgate.run(['config', ...words, '-'], { input });
      expect(code).toBe(64);
      expect(stderr).toMatch(fault);
      expect(stderr).not.toContain('    at ');
    }
  });

  it('takes an anchor that a thousand keys share, and what keys merge', async () => {
    const keys = Array.from(
      { length: 1000 },
      (_, index) => `- {<<: *base, externalId: k${index}, allowedIps: *office}`,
    );
    const first =
      'keys:\n- &base { name: n, tags: [a], externalId: k, allowedIps: &office [192.0.2.0/24] }\n';
    expect(await validate(`${first}${keys.join('\n')}\n`)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('keys: 1001'),
    });
  });

  it('reads YAML in braces as the other commands do', async () => {
    const { file, owner } = await fileWith('{keys: [{externalId: braces, name: x}]}');
    expect((await runInProcess(['config', 'validate', file], {})).code).toBe(0);
    expect((await stage.tollgate.run(['config', 'diff', file, '--owner', owner])).code).toBe(2);
  });
});

describe('a file that is not UTF-8', () => {
  it('is rejected, because its names would be changed', async () => {
    const file = join(stage.directory, 'latin1.yaml');
    await writeFile(file, Buffer.from('keys:\n- externalId: lat1\n  name: M\u00fcller\n', 'latin1'));
    for (const words of [
      ['config', 'validate', file],
      ['config', 'diff', file],
      ['config', 'apply', file, '--yes'],
      ['keys', 'create', 'latin1', '-f', file],
    ]) {
      const { code, stderr } = await stage.tollgate.run(words);
      expect([code, stderr]).toEqual([64, `${file} is not UTF-8.\n`]);
    }
    await expect(readConfigurationFile(file, 'insensitive')).rejects.toThrow('the file is not UTF-8');
  });
});
