import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { until } from '../support/until.ts';
import { runTollgate } from './support/run-tollgate.ts';
import { withTollgate } from './support/with-tollgate.ts';

const stage = withTollgate();
let keyId: string;

beforeAll(async () => {
  keyId = (await stage.tollgate.json('keys', 'create', 'completed')).id;
});

/** The lines that a shell's script reads: the library writes them to the console. */
async function linesOf(words: readonly string[], environment = {}): Promise<readonly string[]> {
  const log = jest.spyOn(console, 'log').mockImplementation(() => {});
  try {
    const ended = await stage.tollgate.run(['complete', '--', ...words], { environment });
    expect(ended).toEqual({ code: 0, stdout: '', stderr: '' });
    return log.mock.calls.map(([line]) => String(line));
  } finally {
    log.mockRestore();
  }
}

/** What the last of the words may become. */
async function completions(words: readonly string[], environment = {}): Promise<readonly string[]> {
  const lines = await linesOf(words, environment);
  return lines.filter((line) => !line.startsWith(':')).map((line) => line.split('\t')[0] ?? '');
}

/** Asks until something is offered: where the process stands still for two seconds, a completion offers nothing. */
async function someCompletions(words: readonly string[], environment = {}): Promise<readonly string[]> {
  let found: readonly string[] = [];
  await until(async () => {
    found = await completions(words, environment);
    return found.length > 0;
  });
  return found;
}

describe('completion', () => {
  it('offers commands, options and the values that an option takes', async () => {
    expect(await completions(['pl'])).toEqual(['plans']);
    expect(await completions(['keys', 'en'])).toEqual(['enable', 'end-rotation']);
    expect(await completions(['keys', 'list', '--tok'])).toEqual(['--token-file']);
    expect(await completions(['keys', 'list', '-o', 'nd'])).toEqual(['ndjson']);
  });

  it('offers ids of keys, plans and contexts', async () => {
    for (const words of [
      ['keys', 'show'],
      ['limits', 'reset'],
    ])
      expect(await someCompletions([...words, ''])).toEqual([keyId]);
    for (const words of [
      ['plans', 'show'],
      ['keys', 'list', '--plan'],
    ])
      expect(await someCompletions([...words, 'def'])).toEqual(['default']);
    const file = join(stage.directory, 'contexts.json');
    await writeFile(file, JSON.stringify({ contexts: { here: { url: stage.url, token: 't' } } }), {
      mode: 0o600,
    });
    expect(await completions(['context', 'use', ''], { TOLLGATE_CONTEXTS: file })).toEqual(['here']);
  });

  it('asks the gateway that the words name', async () => {
    const file = join(stage.directory, 'named.json');
    const token = stage.tollgate.environment.TOLLGATE_TOKEN;
    await writeFile(file, JSON.stringify({ contexts: { named: { url: stage.url, token } } }), {
      mode: 0o600,
    });
    const elsewhere = { TOLLGATE_CONTEXTS: file, TOLLGATE_URL: 'http://127.0.0.1:1' };
    for (const named of [['--context', 'named'], ['--context=named'], ['--url', stage.url]])
      expect(await someCompletions(['keys', 'show', ...named, ''], elsewhere)).toEqual([keyId]);
    const named = ['keys', 'show', '--url', 'http://127.0.0.1:1', ''];
    expect(await completions(named, { TOLLGATE_CONTEXTS: file })).toEqual([]);
  });

  it('offers webhooks with their descriptions, and types of events', async () => {
    const create = ['webhooks', 'create', 'https://1.1.1.1', '--disabled', '--event', '*'];
    const { webhookId } = await stage.tollgate.json(...create, '--description', 'Completed');
    expect(await someCompletions(['webhooks', 'resend', 'whk'])).toEqual([webhookId]);
    expect(await completions(['events', '--type', 'tollgate.limit.r'])).toEqual(['tollgate.limit.reset']);
  });

  it('offers the actions of bulk, then keys; and jobs', async () => {
    expect(await completions(['keys', 'bulk', 'dis'])).toEqual(['disable']);
    expect(await someCompletions(['keys', 'bulk', 'enable', 'key'])).toEqual([keyId]);
    const { jobId } = await stage.tollgate.json('keys', 'bulk', 'enable', keyId, '--yes');
    expect(await someCompletions(['jobs', 'show', ''])).toEqual([jobId]);
  });

  it('offers nothing, and says nothing, where the gateway can not be asked', async () => {
    const environment = { ...stage.tollgate.environment, TOLLGATE_URL: 'http://127.0.0.1:1' };
    // A process, because it may say something without `console.log`.
    const ended = await runTollgate(['complete', '--', 'keys', 'show', ''], { environment });
    expect(ended).toEqual({ code: 0, stdout: ':4\n', stderr: '' });
    expect(await completions(['keys', 'show', ''], { TOLLGATE_TOKEN: '' })).toEqual([]);
  });

  it('offers a description as one line, whatever an administrator wrote, and no value that a shell would expand', async () => {
    const create = ['webhooks', 'create', 'https://1.1.1.2', '--disabled', '--event', '*'];
    const { webhookId } = await stage.tollgate.json(...create, '--description', 'two\n$(touch made)\tlines');
    let lines: readonly string[] = [];
    await until(async () => {
      lines = await linesOf(['webhooks', 'show', webhookId]);
      return lines.length > 1;
    });
    expect(lines).toEqual([`${webhookId}\ttwo\\u{a}$(touch made)\\u{9}lines`, ':4']);
    const file = join(stage.directory, 'odd.json');
    const context = { url: stage.url, token: 't' };
    await writeFile(file, JSON.stringify({ contexts: { '$(touch made)': context, even: context } }), {
      mode: 0o600,
    });
    expect(await completions(['context', 'use', ''], { TOLLGATE_CONTEXTS: file })).toEqual(['even']);
  });

  describe('in bash, by the script that it prints', () => {
    beforeAll(() => symlink(resolve('bin/tollgate.js'), join(stage.directory, 'tollgate')));

    /** What bash offers for the last of the words, which stand on the line as they are. */
    async function offered(...words: readonly string[]): Promise<string> {
      const script = `
      # Of the package bash-completion, which the script needs.
      _init_completion() { words=("\${COMP_WORDS[@]}") cword=$COMP_CWORD cur=\${COMP_WORDS[COMP_CWORD]}; }
      source <(tollgate completion bash)
      COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
      $(complete -p tollgate | sed 's/.*-F \\([^ ]*\\).*/\\1/')
      printf '%s\\n' "\${COMPREPLY[@]}"`;
      const PATH = `${stage.directory}:${resolve(process.execPath, '..')}:${process.env.PATH}`;
      const { stdout } = await promisify(execFile)('bash', ['-c', script, 'bash', ...words], {
        cwd: stage.directory,
        env: { PATH, ...stage.tollgate.environment },
      });
      return stdout.trim();
    }

    it('offers what the command offers', async () => {
      // It gives up on the gateway after 2 s.
      for (const begun of ['', keyId.slice(0, 6)])
        await until(async () => (await offered('tollgate', 'keys', 'show', begun)) === keyId);
      expect(await offered('tollgate', 'keys', 'show', 'other')).toBe('');
    });

    it('runs nothing that stands on the line', async () => {
      expect(await offered('tollgate', 'keys', 'create', '"$(touch made)"', '--pl')).toBe('--plan');
      await offered('tollgate', 'config', 'export', '>', 'made', '--ow');
      await offered('tollgate', 'keys', 'create', '$(touch made)');
      expect(existsSync(join(stage.directory, 'made'))).toBe(false);
    });
  });

  describe('in PowerShell, by the script that it prints', () => {
    /** All that begin and end a text in single quotes; two in a row are one of the text. */
    const QUOTES = "'\u2018\u2019\u201a\u201b";

    /** What PowerShell reads of a line of words in single quotes; undefined where something is outside of them. */
    function read(line: string): readonly string[] | undefined {
      const word = `[${QUOTES}]((?:[^${QUOTES}]|[${QUOTES}]{2})*)[${QUOTES}]`;
      if (!new RegExp(`^${word}(?: ${word})*$`).test(line)) return undefined;
      const doubled = new RegExp(`[${QUOTES}]([${QUOTES}])`, 'g');
      return [...line.matchAll(new RegExp(word, 'g'))].map(([, text = '']) => text.replaceAll(doubled, '$1'));
    }

    it('runs nothing that stands on the line, whatever quotes are in it', async () => {
      const script = await stage.tollgate.text('completion', 'powershell');
      const quoting = /\| ForEach-Object \{ "'" \+ \(\$_ -replace "(.*?)", ["'](.*?)["']\) \+ "'" \}/;
      const [, pattern = '', replacement = ''] = quoting.exec(script) ?? [];
      // `$0` is what .NET has found.
      const quoted = (text: string) =>
        text.replace(new RegExp(pattern, 'g'), (found) => replacement.replaceAll('$0', found));
      const words = [...QUOTES].flatMap((quote) => [
        `Partner${quote};calc;${quote}`,
        quote,
        `${quote}'${quote}`,
      ]);
      expect(read(words.map((word) => `'${quoted(word)}'`).join(' '))).toEqual(words);
      // Its bytes mean the same in every encoding that PowerShell may read it in.
      expect(script).toMatch(/^[\t\n\x20-\x7e]*$/);
    });
  });
});
