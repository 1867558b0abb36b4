import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { statusOf } from '../support/burst.ts';
import { requireProgram } from '../support/debian-package.ts';
import { endChild } from '../support/end-child.ts';
import { until } from '../support/until.ts';
import { runOnTerminal, WITH_FULL_DISK } from './support/run-tollgate.ts';
import { withTollgate } from './support/with-tollgate.ts';

const stage = withTollgate();

beforeAll(async () => {
  await requireProgram('script', 'bsdutils');
});

let made = 0;

/** A secret that no other test uses. */
function secret(): string {
  made += 1;
  return `secret-of-another-gateway-${String(made).padStart(8, '0')}`;
}

async function file(content: string | Buffer): Promise<string> {
  made += 1;
  const path = join(stage.directory, `${made}.txt`);
  await writeFile(path, content);
  return path;
}

/** How an import ended, with what it says of it in JSON. */
async function imported(...words: readonly string[]) {
  const ended = await stage.tollgate.run(['keys', 'import', ...words, '-o', 'json']);
  return { ...ended, report: ended.stdout === '' ? undefined : JSON.parse(ended.stdout) };
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const csv = (...rows: readonly string[]): string => rows.map((row) => `${row}\n`).join('');
/** How many keys have this in their name. */
async function countNamed(name: string): Promise<number> {
  const query = new URLSearchParams({ q: name, count: 'true', limit: '1' });
  const { body } = await stage.admin.call('GET', `/consumer-api-key?${query}`);
  expect(body).toMatchObject({ total: expect.any(Number) });
  return body.total;
}

describe('tollgate keys find', () => {
  it('says whose a secret from standard input is, and shows no secret', async () => {
    const { id, secret: current } = await stage.tollgate.json('keys', 'create', 'found');
    const rotated = await stage.tollgate.json('keys', 'rotate', 'found', '--grace', '1h');
    for (const [input, matchedSecret] of [
      [`${current}\n`, 'previous'],
      [rotated.secret, 'current'],
    ]) {
      const { code, stdout } = await stage.tollgate.run(['keys', 'find', '-o', 'json'], { input });
      expect([code, JSON.parse(stdout)]).toEqual([
        0,
        expect.objectContaining({ consumerApiKeyId: id, matchedSecret }),
      ]);
      expect(stdout).not.toContain(input.trim());
    }
  });

  it('ends with 4 for a secret of no key, and takes none as an argument', async () => {
    const unknown = await stage.tollgate.run(['keys', 'find'], { input: secret() });
    expect(unknown).toMatchObject({ code: 4, stdout: '' });
    expect((await stage.tollgate.run(['keys', 'find'], { input: '' })).code).toBe(64);
    const argument = secret();
    const { code, stderr } = await stage.tollgate.run(['keys', 'find', argument]);
    expect(code).toBe(64);
    expect(stderr).not.toContain(argument);
  });

  it('asks for the secret on a terminal', async () => {
    const { secret: typed } = await stage.tollgate.json('keys', 'create', 'typed');
    const environment = { ...stage.tollgate.environment, NO_COLOR: '1' };
    const { code, stdout } = await runOnTerminal(['keys', 'find'], { environment, input: `${typed}\n` });
    expect([code, stdout]).toEqual([0, expect.stringMatching(/Secret: [\s\S]*NAME: +typed/)]);
  });
});

describe('tollgate keys import', () => {
  it('makes the keys of a CSV file, with every field that a column has', async () => {
    await stage.tollgate.text('plans', 'create', 'imported', '--limit', '5', '--period', 'hour');
    const [given, hashed] = [secret(), 'short'];
    const path = await file(
      csv(
        'name,secret,secretHash,rateLimitId,enabled,expiresAt,externalId,tags,metadata,overrides,allowedIps,allowedOrigins,selfService',
        `all of it,${given},,imported,TRUE,2099-01-01T00:00:00Z,acme,"a, b",${quoted('{"team":"x, y"}')},${quoted('{"main":{"limit":7}}')},127.0.0.0/8 ::1,,rotate`,
        `by hash,,${sha256(hashed)},,,,,,,,,,`,
        `off,${secret()},,,false,,,,,,,,`,
      ),
    );
    const { code, report, stderr } = await imported(path);
    expect([code, report, stderr]).toEqual([
      0,
      { rows: 3, made: 3, skipped: 0, rejected: [] },
      '3 rows: 3 made, 0 skipped, 0 rejected.\n',
    ]);
    expect(await statusOf(stage.url, given)).toBe(200);
    expect(await statusOf(stage.url, hashed)).toBe(200);
    expect(await stage.tollgate.json('keys', 'show', 'all of it')).toMatchObject({
      rateLimitId: 'imported',
      expiresAt: '2099-01-01T00:00:00Z',
      externalId: 'acme',
      tags: ['a', 'b'],
      metadata: { team: 'x, y' },
      overrides: { main: { limit: 7 } },
      allowedIps: ['127.0.0.0/8', '::1'],
      selfService: ['rotate'],
    });
    expect(await stage.tollgate.json('keys', 'show', 'off')).toMatchObject({ enabled: false });
  });

  it('makes the keys of the samples in docs/cli.md', async () => {
    await stage.tollgate.text('plans', 'create', 'gold', '--limit', '5', '--period', 'hour');
    const guide = await readFile('docs/cli.md', 'utf8');
    const [, table = ''] = /```\n(name,secret,.*?\n)```/s.exec(guide) ?? [];
    const [, lines = ''] = /```\n(\{"name".*?\n)```/s.exec(guide) ?? [];
    expect(await imported(await file(table))).toMatchObject({ code: 0, report: { made: 2 } });
    const skipped = await imported(await file(lines), '--on-conflict', 'skip');
    expect(skipped).toMatchObject({ code: 0, report: { made: 0, skipped: 1 } });
  });

  it('makes the keys of JSON lines, from standard input as well', async () => {
    const [given, hashed] = [secret(), secret()];
    const lines = [
      { name: 'line one', secret: given, tags: ['x'] },
      { name: 'line two', secretHash: sha256(hashed) },
    ];
    const input = `\ufeff\n${lines.map((line) => `${JSON.stringify(line)}\r\n`).join('\n')}`;
    const ended = await stage.tollgate.run(['keys', 'import', '-'], { input });
    expect(ended).toMatchObject({ code: 0, stderr: expect.stringContaining('2 rows: 2 made') });
    for (const each of [given, hashed]) expect(await statusOf(stage.url, each)).toBe(200);
  });

  it('reads quotes, line breaks in cells, a byte order mark and all line ends', async () => {
    const secrets = [secret(), secret(), secret()];
    const content = `\ufeffname,"secret"\r\n"a ""b"", c",${secrets[0]}\r\r\n\n  Größe 鍵 ,  ${secrets[1]}\n"unlike others", "${secrets[2]}"`;
    const { code, report } = await imported(await file(content));
    expect([code, report?.made]).toEqual([0, 3]);
    for (const name of ['a "b", c', 'Größe 鍵', 'unlike others']) expect(await countNamed(name)).toBe(1);
  });

  it('says of each row that is rejected which and why, and makes all others', async () => {
    const taken = secret();
    await stage.tollgate.run(['keys', 'import', '-'], { input: csv('name,secret', `owner,${taken}`) });
    const rows = [
      'name,secret,secretHash,rateLimitId,enabled,expiresAt,tags,metadata',
      `good 1,${secret()},,,,,,`,
      `conflict,${taken},,,,,,`,
      `bad plan,${secret()},,no such plan,,,,`,
      `missing plan,${secret()},,missing,,,,`,
      `bad enabled,${secret()},,,maybe,,,`,
      `past,${secret()},,,,2001-01-01T00:00:00Z,,`,
      `past too,${secret()},,,,2001-01-01T00:00:00Z,,`,
      '',
      `bad tags,${secret()},,,,,Ä Ö,`,
      `bad json,${secret()},,,,,,{`,
      `few,${secret()}`,
      'no secret,,,,,,,',
      `,${secret()},,,,,,`,
      `good 2,${secret()},,,,,,`,
      `rounded,${secret()},,,,,,"{""a"":12345678901234567890}"`,
    ];
    const rejectedFile = join(stage.directory, 'rejected.csv');
    const { code, report, stderr } = await imported(await file(csv(...rows)), '--rejected', rejectedFile);
    expect(code).toBe(1);
    expect(stderr).toContain(`14 rows: 2 made, 0 skipped, 12 rejected.\n`);
    expect(
      report?.rejected.map(({ row, code: why, field }: Record<string, unknown>) => [row, why, field]),
    ).toEqual([
      [3, 'secret_taken', 'secret'],
      [4, 'plan_not_found', 'rateLimitId'],
      [5, 'plan_not_found', 'rateLimitId'],
      [6, 'invalid_row', 'enabled'],
      [7, 'invalid_body', 'expiresAt'],
      [8, 'invalid_body', 'expiresAt'],
      [10, 'invalid_body', 'tags[0] tags[1]'],
      [11, 'invalid_row', 'metadata'],
      [12, 'invalid_row', null],
      [13, 'invalid_body', 'secret'],
      [14, 'invalid_body', 'name'],
      [16, 'invalid_row', 'metadata'],
    ]);
    for (const name of ['good 1', 'good 2']) expect(await countNamed(name)).toBe(1);
    expect((await stat(rejectedFile)).mode & 0o777).toBe(0o600);
    const expected = [rows[0], ...rows.slice(2, 8), ...rows.slice(9, 14), rows.at(-1)]
      .map((row) => `${row}\n`)
      .join('');
    expect(await readFile(rejectedFile, 'utf8')).toBe(expected);
    const again = await imported(await file(csv(...rows)), '--rejected', rejectedFile);
    expect(again).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('is there already') });
  });

  it('rejects rows with too many tags beside those of its token, and makes the others', async () => {
    const token = await stage.tollgate.json(
      ...['tokens', 'create', 'importer', '--scope', 'keys:write', '--only-tag', 'eu'],
    );
    const tags = Array.from({ length: 20 }, (_, n) => `t${n}`).join(' ');
    const rows = ['name,secret,tags', `eu 1,${secret()},a`, `eu 2,${secret()},${tags}`, `eu 3,${secret()},`];
    const { code, stdout } = await stage.tollgate.run(['keys', 'import', '-', '-o', 'json'], {
      environment: { TOLLGATE_TOKEN: token.secret },
      input: csv(...rows),
    });
    expect(code).toBe(1);
    const rejected = [{ row: 3, code: 'invalid_body', field: 'tags' }];
    expect(JSON.parse(stdout)).toMatchObject({ made: 2, rejected });
  });

  it('makes the rows that were rejected once they are corrected', async () => {
    const path = await file(
      `${JSON.stringify({ name: 'late', secret: secret(), rateLimitId: 'late-plan' })}\n`,
    );
    const rejectedFile = join(stage.directory, 'rejected.jsonl');
    expect((await imported(path, '--rejected', rejectedFile)).code).toBe(1);
    expect(await readFile(rejectedFile, 'utf8')).toBe(await readFile(path, 'utf8'));
    await stage.tollgate.text('plans', 'create', 'late-plan', '--limit', '5', '--period', 'hour');
    // The same file, whose first rejection the gateway has kept for its Idempotency-Key.
    expect(await imported(path)).toMatchObject({ code: 0, report: { made: 1 } });
  });

  it('says in a sentence that the disk is too full for rejected rows', async () => {
    const path = await file(csv('name,secret', 'short,abc'));
    const rejectedFile = join(stage.directory, 'full-disk.csv');
    const words = ['keys', 'import', path, '--rejected', rejectedFile];
    const { code, stderr } = await stage.tollgate.run(words, { shellLine: WITH_FULL_DISK });
    expect(code).toBe(1);
    expect(stderr).toMatch(/full-disk\.csv can not be written \(\w+\)\.\n$/);
    expect(stderr).not.toContain('    at ');
    expect(await readdir(stage.directory)).not.toContain('full-disk.csv.partial');
  });

  it('shows rejected rows as a table on a terminal, and as CSV', async () => {
    const path = await file(csv('name,secret', `short,abc`));
    const table = await runOnTerminal(['keys', 'import', path], {
      environment: { ...stage.tollgate.environment, NO_COLOR: '1' },
      columns: 60,
    });
    expect(table.stdout).toContain('1 of 1 rows\r\u001b[KROW');
    expect(table.stdout).toMatch(/ROW +CODE +FIELD +MESSAGE\r\n +2 +invalid_body +secret +must be.*\r\n/);
    const text = await stage.tollgate.run(['keys', 'import', path, '-o', 'csv']);
    // The reason is longer than the terminal is wide.
    const [, reason = ''] = /secret,"(.*)"/.exec(text.stdout) ?? [];
    expect(reason.length).toBeGreaterThan(60);
    expect(table.stdout).toContain(reason);
    expect(text.stdout).toMatch(/^row,code,field,message\n2,invalid_body,secret,"must be a secret/);
  });

  it('ends with 5 where secrets are taken, or skips those with --on-conflict skip', async () => {
    const path = await file(csv('name,secret', `one,${secret()}`, `two,${secret()}`));
    expect((await imported(path)).code).toBe(0);
    const [, again] = [await imported(path), await imported(path, '--restart')];
    expect(again).toMatchObject({ code: 5, report: { made: 0, rejected: [{ row: 2 }, { row: 3 }] } });
    const skipping = await imported(path, '--restart', '--on-conflict', 'skip');
    expect(skipping).toMatchObject({ code: 0, report: { made: 0, skipped: 2, rejected: [] } });
  });

  it('rejects the second of two rows with one secret', async () => {
    const twice = secret();
    const path = await file(csv('name,secret', `first,${twice}`, `second,${twice}`, `hash,${secret()}`));
    expect(await imported(path, '--batch-size', '1')).toMatchObject({
      code: 5,
      report: { made: 2, rejected: [{ row: 3, code: 'secret_taken' }] },
    });
  });

  it('repeats the result of an earlier run of the same file, and says so', async () => {
    const path = await file(csv('name,secret', ...Array.from({ length: 5 }, () => `repeated,${secret()}`)));
    const first = await imported(path, '--batch-size', '2');
    const second = await imported(path, '--batch-size', '2');
    expect(second.report).toEqual(first.report);
    expect(second.stderr).toContain('3 batches were imported by an earlier run');
    expect(await countNamed('repeated')).toBe(5);
  });

  it('makes each key once when it is killed and run again', async () => {
    const rows = Array.from({ length: 400 }, () => `killed,${secret()}`);
    const path = await file(csv('name,secret', ...rows));
    const words = ['keys', 'import', path, '--batch-size', '10'];
    const child = spawn(process.execPath, [resolve('bin/tollgate.js'), ...words], {
      env: { PATH: process.env.PATH ?? '', ...stage.tollgate.environment },
      stdio: 'ignore',
    });
    try {
      await until(async () => (await countNamed('killed')) > 0);
    } finally {
      await endChild(child);
    }
    const before = await countNamed('killed');
    const resumed = await imported(path, '--batch-size', '10');
    expect(resumed).toMatchObject({ code: 0, report: { rows: 400, made: 400, rejected: [] } });
    expect(before).toBeLessThan(400);
    expect(await countNamed('killed')).toBe(400);
  });

  it('starts the file of rejected rows over after a kill, and follows no link', async () => {
    const path = await file(csv('name,secret', 'short,abc'));
    const rejectedFile = join(stage.directory, 'after-kill.csv');
    const precious = await file('precious');
    await symlink(precious, `${rejectedFile}.partial`);
    expect((await imported(path, '--rejected', rejectedFile)).code).toBe(1);
    expect(await readFile(rejectedFile, 'utf8')).toBe('name,secret\nshort,abc\n');
    expect(await readFile(precious, 'utf8')).toBe('precious');
  });

  it('says that its rejected rows are in no file where another import has made that file', async () => {
    const rejectedFile = join(stage.directory, 'shared.csv');
    let first: ChildProcess | undefined;
    const ended = stage.tollgate.run(['keys', 'import', '-', '--rejected', rejectedFile], {
      // Standard input stays open until the test ends it.
      prompt: 'never written',
      onStart: (child) => {
        first = child;
      },
    });
    await until(async () => (await readdir(stage.directory)).includes('shared.csv.partial'));
    const path = await file(csv('name,secret', 'second,abc'));
    expect((await imported(path, '--rejected', rejectedFile)).code).toBe(1);
    first?.stdin?.end(csv('name,secret', 'first,abc'));
    const { code, stdout, stderr } = await ended;
    expect([code, JSON.parse(stdout)]).toMatchObject([1, { rejected: [{ row: 2, field: 'secret' }] }]);
    expect(stderr).toMatch(/they are not in .*shared\.csv: another import has made that file meanwhile\.\n$/);
    expect(await readFile(rejectedFile, 'utf8')).toBe('name,secret\nsecond,abc\n');
  });

  it('makes nothing in a dry run, and says what is wrong so far', async () => {
    const path = await file(
      csv('name,secret,rateLimitId', `dry run,${secret()},`, `dry run,${secret()},none`, 'dry run,,'),
    );
    const { code, report, stderr } = await imported(path, '--dry-run');
    expect(code).toBe(1);
    expect(stderr).toContain('Dry run, nothing was made: 3 rows: 1 in order, 0 skipped, 2 rejected.');
    expect(report?.rejected).toMatchObject([
      { row: 3, code: 'plan_not_found' },
      { row: 4, code: 'invalid_body' },
    ]);
    expect(await countNamed('dry run')).toBe(0);
  });

  it('rejects the rows in a dry run that it rejects without, for the same reasons', async () => {
    const key = { name: 'same in a dry run', secret: 's'.repeat(20) };
    const lines = [
      { name: key.name },
      { ...key, secret: 'short' },
      { ...key, secret: undefined, secretHash: '$2b$10$N9qo8uLOickgx2ZMRZoMye' },
      { ...key, expiresAt: '2001-01-01T00:00:00Z', tags: ['Ä', 'Ö'] },
      { ...key, allowedIps: ['10.0.0.1/8'] },
      { ...key, metadata: { note: 'x'.repeat(9000) } },
      { ...key, rateLimitId: 'no such plan' },
      { ...key, unknown: true },
    ];
    const path = await file(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const dry = await imported(path, '--dry-run');
    expect(dry).toMatchObject({ code: 1, report: { rows: lines.length, made: 0 } });
    expect({ dryRun: true, ...(await imported(path)).report }).toEqual(dry.report);
  });

  it.each([
    ['a quote that is never closed', () => csv('name,secret', `a,${secret()}`, `"b,${secret()}`), 'quote'],
    ['a quote in the middle', () => csv('name,secret', `a,${secret()}`, `b"c",${secret()}`), 'quote'],
    ['a cell without end', () => `name,secret\na,${secret()}\n"${'x'.repeat(2_000_000)}"`, '1 MiB'],
    ['an unknown column', () => csv('name,secret,expiresat', `a,${secret()},`), '"expiresat"'],
    ['a column twice', () => csv('name,secret,name', `a,${secret()},b`), 'twice'],
    ['a JSON list', () => '[{"name":"a"}]', "jq -c '.[]'"],
    ['a line without end', () => `{"name":"a"}\n{"name":"${'x'.repeat(2_000_000)}"}`, '1 MiB'],
    ['nothing', () => ' \n', 'empty'],
    ['another encoding', () => Buffer.from(csv('name,secret', `é,${secret()}`), 'latin1'), 'UTF-8'],
    ['UTF-16', () => Buffer.from(`\ufeff${csv('name,secret', `a,${secret()}`)}`, 'utf16le'), 'UTF-8'],
  ])('imports nothing of a file with %s', async (_what, content, why) => {
    const before = await countNamed('a');
    const { code, stdout, stderr } = await imported(await file(content()));
    expect([code, stdout]).toEqual([64, '']);
    expect(stderr).toContain(why);
    expect(await countNamed('a')).toBe(before);
  });

  it('shows only the beginning of a possible secret in a file without a header', async () => {
    const first = secret();
    const { code, stderr } = await imported(await file(csv(`app,${first}`, `app,${secret()}`)));
    expect(code).toBe(64);
    expect(stderr).not.toContain(first);
  });

  it('keeps what it has done when the gateway goes away, and leaves no file behind', async () => {
    const path = await file(csv('name,secret', `away,${secret()}`));
    const rejectedFile = join(stage.directory, 'away.csv');
    const words = ['keys', 'import', path, '--rejected', rejectedFile, '--retries', '0'];
    const ended = await stage.tollgate.run(words, { environment: { TOLLGATE_URL: 'http://127.0.0.1:1' } });
    expect(ended).toMatchObject({ code: 75, stderr: expect.stringContaining('Run the command again') });
    expect((await readdir(stage.directory)).filter((name) => name.startsWith('away'))).toEqual([]);
    expect((await stage.tollgate.run(['keys', 'import', join(stage.directory, 'missing.csv')])).code).toBe(
      64,
    );
  });

  it.each(['0', '501'])('sends 1 to 500 rows in a request, and not %s', async (rows) => {
    const { code, stderr } = await imported('missing.csv', '--batch-size', rows);
    expect(code).toBe(64);
    expect(stderr).toContain('It must be a whole number from 1 to 500.');
  });

  it('reads a file that is larger than its memory', async () => {
    // The gateway gets the metadata without the spaces, and few rows: the test takes the time of the file only.
    const row = `large,${'x'.repeat(499)},${quoted(`{ "note": ${' '.repeat(120_000)} "x" }`)}\n`;
    const path = await file(`name,secret,metadata\n${row.repeat(450)}`);
    const ended = await stage.tollgate.run(['keys', 'import', path, '--dry-run', '--batch-size', '20'], {
      nodeOptions: ['--max-old-space-size=48'],
    });
    expect(ended).toMatchObject({ code: 0, stderr: expect.stringContaining('450 rows: 450') });
  });
});

function quoted(cell: string): string {
  return `"${cell.replaceAll('"', '""')}"`;
}
