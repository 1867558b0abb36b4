import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { requireProgram } from '../support/debian-package.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';
import { type EndedCommand, type RunOptions, runOnTerminal } from './support/run-tollgate.ts';
import { withTollgate } from './support/with-tollgate.ts';

const stage = withTollgate();

beforeAll(async () => {
  await requireProgram('script', 'bsdutils');
  await stage.tollgate.text('keys', 'create', 'Schlüssel 鍵 of a rather long name', '--tag', 'shown');
  await stage.tollgate.text('keys', 'create', '=cmd|calc', '--external-id', 'a,"b"', '--tag', 'shown');
});

function onTerminal(
  words: readonly string[],
  options: RunOptions & { columns?: number } = {},
): Promise<EndedCommand> {
  return runOnTerminal(words, {
    ...options,
    environment: { ...stage.tollgate.environment, ...options.environment },
  });
}

const LIST = ['keys', 'list', '--tag', 'shown'];

describe('output', () => {
  it('is a table on a terminal, in lines no wider than it', async () => {
    for (const columns of [90, 200]) {
      const { code, stdout } = await onTerminal(LIST, { columns, environment: { NO_COLOR: '1' } });
      const lines = stdout.trimEnd().split('\r\n');
      expect(code).toBe(0);
      expect(lines).toHaveLength(3);
      expect(stdout.match(/^key_\w{26} /gm)).toHaveLength(2);
      expect(lines[0]).toMatch(/^ID +NAME +STATUS +PLAN/);
      // The two characters of a wide one count twice.
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(columns);
      expect(stdout.includes('Schlüssel 鍵 of a rather long name')).toBe(columns === 200);
      expect(stdout.includes('…')).toBe(columns === 90);
    }
  });

  it('that a full disk does not take is named in one line', async () => {
    const words = [...LIST, '-o', 'csv'];
    const { code, stderr } = await stage.tollgate.run(words, { shellLine: 'exec "$@" > /dev/full' });
    expect([code, stderr]).toEqual([1, 'Standard output can not be written (ENOSPC).\n']);
  });

  it('has bold headers on a terminal, but not with NO_COLOR or on a dumb one', async () => {
    expect((await onTerminal(LIST)).stdout).toContain('\u001b[1mID');
    for (const environment of [{ NO_COLOR: '1' }, { TERM: 'dumb' }])
      expect((await onTerminal(LIST, { environment })).stdout).not.toContain('\u001b');
    expect(await stage.tollgate.text(...LIST, '-o', 'table')).not.toContain('\u001b');
  });

  it('is JSON where standard output is no terminal', async () => {
    const { stdout, stderr } = await stage.tollgate.run(LIST);
    expect(JSON.parse(stdout)).toHaveLength(2);
    expect(stderr).toBe('');
  });

  it('is the same data in each format', async () => {
    const json = await stage.tollgate.json(...LIST);
    expect(parse(await stage.tollgate.text(...LIST, '-o', 'yaml'))).toEqual(json);
    const ndjson = (await stage.tollgate.text(...LIST, '-o', 'ndjson')).trim().split('\n');
    expect(ndjson.map((line) => JSON.parse(line))).toEqual(json);
    const ids = (await stage.tollgate.text(...LIST, '-o', 'id')).trim().split('\n');
    expect(ids).toEqual(json.map((key: { consumerApiKeyId: string }) => key.consumerApiKeyId));
  });

  it('as YAML is the same data for programs that read YAML 1.1', async () => {
    const tags = ['12:30', 'no', 'on', 'y'];
    const { id } = await stage.tollgate.json(
      'keys',
      'create',
      'yes',
      ...tags.flatMap((tag) => ['--tag', tag]),
    );
    const shown = await stage.tollgate.text('keys', 'show', id, '-o', 'yaml');
    expect(parse(shown, { version: '1.1' })).toMatchObject({ name: 'yes', tags });
  });

  it('as CSV has the columns that docs/cli.md lists', async () => {
    const { id } = await stage.tollgate.json('keys', 'create', 'of columns');
    const guide = await readFile('docs/cli.md', 'utf8');
    const [, table = ''] = /^\| command \| columns of CSV \|\n\|.*\n((?:\|.*\n)+)/m.exec(guide) ?? [];
    const rows = table
      .trim()
      .split('\n')
      .map((row) => [...row.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text));
    expect(rows.length).toBeGreaterThan(8);
    for (const [command = '', ...columns] of rows) {
      const words = command.replace('<key>', id).split(' ');
      const [header] = (await stage.tollgate.text(...words, '-o', 'csv')).split(/\r?\n/);
      expect([command, header]).toEqual([command, columns.join()]);
    }
  });

  it.each(['json', 'yaml', 'ndjson'])('has no character as %s that controls a terminal', async (format) => {
    const text = 'a\u001b[31m b\u009b31m c\u202e';
    const metadata = JSON.stringify({ text, [text]: ['plain'] });
    const { id } = await stage.tollgate.json('keys', 'create', 'hostile', '--metadata', metadata);
    const shown = await stage.tollgate.text('keys', 'show', id, '-o', format);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
    expect(shown).not.toMatch(/[\u001b\u009b\u202e]/);
    expect(parse(shown).metadata).toEqual(JSON.parse(metadata));
  });

  it('has no character as CSV that controls a terminal, but in a file it has', async () => {
    const owner = 'a\u001b[2J\u0007';
    await stage.tollgate.text('keys', 'create', 'of a hostile owner', '--external-id', owner);
    const words = ['keys', 'list', '--external-id', owner, '-o', 'csv'];
    expect((await onTerminal(words)).stdout).toContain(',a\\u{1b}[2J\\u{7},');
    expect(await stage.tollgate.text(...words)).toContain(`,${owner},`);
  });

  it('has no character as an id that controls a terminal, but in a file it has', async () => {
    const name = 'a\u001b[2J';
    const file = join(stage.directory, 'hostile-contexts.json');
    const contexts = { [name]: { url: stage.url, token: 'of nothing' } };
    await writeFile(file, JSON.stringify({ contexts }), { mode: 0o600 });
    const environment = { TOLLGATE_CONTEXTS: file };
    const words = ['context', 'list', '-o', 'id'];
    expect((await onTerminal(words, { environment })).stdout).toBe('a\\u{1b}[2J\r\n');
    expect((await stage.tollgate.run(words, { environment })).stdout).toBe(`${name}\n`);
  });

  it('has no fault of another server that controls a terminal', async () => {
    const fault = { error: 'a\u001b[2J', code: 'b', errors: [{ field: 'c\u009b', message: 'd\u202e' }] };
    const server = createServer((_req, res) =>
      res.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(fault)),
    );
    const url = `http://127.0.0.1:${await listenOnLoopback(server)}`;
    try {
      const { stderr } = await stage.tollgate.run(['plans', 'list', '--url', url]);
      expect(stderr).toBe('a\\u{1b}[2J\n  c\\u{9b}: d\\u{202e}\n');
    } finally {
      server.close();
    }
  });

  it('has no name in a question that breaks its line', async () => {
    const { id } = await stage.tollgate.json('keys', 'create', 'shop\u2028dohs');
    for (const options of [['--dry-run'], []]) {
      const { stderr } = await stage.tollgate.run(['keys', 'delete', id, ...options]);
      expect(stderr).toContain('The key shop\\u{2028}dohs (');
    }
  });

  it('ends with its own exit code where its notes have no reader', async () => {
    const { code } = await stage.tollgate.run(['keys', 'show', 'absent'], { closesStderr: true });
    expect(code).toBe(4);
  });

  it('is CSV that no spreadsheet runs', async () => {
    const [header, first] = (await stage.tollgate.text(...LIST, '-o', 'csv')).split('\n');
    expect(header).toBe('id,name,status,plan,expires,tags,owner,created');
    expect(first).toMatch(/^key_\w+,'=cmd\|calc,active,\(default\),,shown,"a,""b""",/);
    expect(await stage.tollgate.text(...LIST, '-o', 'csv', '--no-headers')).not.toContain('owner');
    expect(await stage.tollgate.text(...LIST, '-o', 'table', '--no-headers')).not.toContain('OWNER');
  });

  it('of one object is a line for each of its properties', async () => {
    const { stdout } = await onTerminal(['plans', 'show', 'default'], { environment: { NO_COLOR: '1' } });
    expect(stdout).toMatch(/^ID: +default\r\nLIMIT: +1000\r\n/);
  });
});

describe('a job on a terminal', () => {
  it('shows its progress, and then how it ended', async () => {
    const words = ['keys', 'bulk', 'enable', '--tag', 'shown', '--yes'];
    const { code, stdout } = await onTerminal(words, { environment: { NO_COLOR: '1' } });
    expect(code).toBe(0);
    expect(stdout).toMatch(/job_\w{26}: \d of 2 keys\r.*ID: +job_\w{26}\r\n.*STATE: +done\r\n/s);
  });
});

describe('a question on a terminal', () => {
  it('says what will happen, and only a yes makes it happen', async () => {
    await stage.tollgate.text('keys', 'create', 'asked about');
    const words = ['keys', 'delete', 'asked about'];
    const declined = await onTerminal(words, { input: 'n\n' });
    expect(declined.stdout).toMatch(/The key asked about \(key_\w+\) is deleted for good\. Go on\? \[y\/N\]/);
    expect(declined.stdout).toContain(`On ${stage.url}: The key`);
    expect(declined).toMatchObject({ code: 1, stdout: expect.stringContaining('Nothing was changed.') });
    for (const input of ['\u0003', '\u0004']) {
      const left = await onTerminal(words, { input, prompt: 'Go on?' });
      expect(left).toMatchObject({
        code: 1,
        stdout: expect.stringMatching(/\[y\/N\] .*\r\nNothing was changed\.\r\n$/),
      });
    }
    expect((await onTerminal(words, { input: 'y\n' })).code).toBe(0);
    expect((await stage.tollgate.run(['keys', 'show', 'asked about'])).code).toBe(4);
  });
});
