import { spawn } from 'node:child_process';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { statusOf } from '../support/burst.ts';
import { endChild } from '../support/end-child.ts';
import { freePort } from '../support/free-port.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';
import { TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';
import { runOnTerminal, WITH_FULL_DISK } from './support/run-tollgate.ts';
import { withTollgate } from './support/with-tollgate.ts';

const stage = withTollgate({ USAGE_FLUSH_MS: '100' });

describe('tollgate keys rotate', () => {
  it('gives a key a second secret, and end-rotation leaves the one that is kept', async () => {
    const first = (await stage.tollgate.json('keys', 'create', 'rotated')).secret as string;
    const file = join(stage.directory, 'second');
    const shown = await stage.tollgate.text(
      'keys',
      'rotate',
      'rotated',
      '--grace',
      '1h',
      '--secret-file',
      file,
    );
    const second = (await readFile(file, 'utf8')).trim();
    expect(shown).not.toContain(second);
    for (const secret of [first, second]) expect(await statusOf(stage.url, secret)).toBe(200);
    const again = await stage.tollgate.run(['keys', 'rotate', 'rotated', '--grace', '1h']);
    expect(again.code).toBe(5);
    await stage.tollgate.text('keys', 'end-rotation', 'rotated', '--keep', 'new', '--yes');
    expect(await statusOf(stage.url, first)).toBe(401);
    expect(await statusOf(stage.url, second)).toBe(200);
  });

  it('asks before it ends the present secret at once', async () => {
    const { id, secret } = await stage.tollgate.json('keys', 'create', 'leaked');
    const unasked = await stage.tollgate.run(['keys', 'rotate', id, '--grace', '0s']);
    expect(unasked).toMatchObject({ code: 64, stderr: expect.stringContaining('--yes') });
    expect((await stage.tollgate.run(['keys', 'rotate', id, '--grace', '1h', '--dry-run'])).stdout).toBe('');
    expect(await statusOf(stage.url, secret)).toBe(200);
    const rotated = await stage.tollgate.json('keys', 'rotate', id, '--grace', '0s', '--yes');
    expect(await statusOf(stage.url, secret)).toBe(401);
    expect(await statusOf(stage.url, rotated.secret)).toBe(200);
  });
});

describe('--handover of tollgate keys', () => {
  it.each(['table', 'json'])('shows a link and no secret at create and rotate, -o %s', async (format) => {
    const name = `handed over as ${format}`;
    const options = ['--handover', '24h', '--handover-note', 'for you', '-o', format];
    for (const words of [
      ['create', name],
      ['rotate', name, '--grace', '1h'],
    ]) {
      const { code, stdout, stderr } = await stage.tollgate.run(['keys', ...words, ...options]);
      expect([code, stderr]).toEqual([0, '']);
      const [, token] = /\/tollgate\/self\/handover#(tgh_\w+)/.exec(stdout) ?? [];
      const response = await fetch(`${stage.url}/tollgate/self/handover/reveal`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ token }),
      });
      const { secret } = (await response.json()) as { readonly secret: string };
      expect(await statusOf(stage.url, secret)).toBe(200);
      expect(stdout).not.toContain(secret);
    }
    const { body } = await stage.admin.call('GET', `/consumer-api-key?q=${encodeURIComponent(name)}`);
    const path = `/consumer-api-key/${body.apiKeys[0].consumerApiKeyId}/handover`;
    const { handovers } = (await stage.admin.call('GET', path)).body;
    for (const { createdAt, expiresAt } of handovers)
      expect(Date.parse(expiresAt) - Date.parse(createdAt)).toBe(86_400_000);
    expect(handovers).toHaveLength(2);
  });
});

describe('tollgate keys show --reveal', () => {
  const notShown = (code: number, reason: string) => ({
    ...{ code, stdout: '' },
    stderr: expect.stringMatching(new RegExp(`^The secret is not shown: .*${reason}.*\\n$`)),
  });

  it('shows nothing to a token without keys:secret, and names the scope', async () => {
    await stage.tollgate.text('keys', 'create', 'revealed');
    const { secret } = await stage.tollgate.json('tokens', 'create', 'r', '--scope', 'read-only');
    const words = ['keys', 'show', 'revealed', '--reveal'];
    const ended = await stage.tollgate.run(words, { environment: { TOLLGATE_TOKEN: secret } });
    expect(ended).toMatchObject(notShown(3, 'keys:secret'));
  });

  it('says of a key that was imported as a hash that its secret is not known', async () => {
    const key = { name: 'hashed', secretHash: 'a'.repeat(64) };
    await stage.tollgate.run(['keys', 'import', '-'], { input: JSON.stringify(key) });
    const ended = await stage.tollgate.run(['keys', 'show', 'hashed', '--reveal']);
    expect(ended).toMatchObject(notShown(1, 'hash'));
  });

  describe('with SECRET_REVEAL=once', () => {
    const once = withTollgate({ SECRET_REVEAL: 'once' });

    it('shows nothing, and says that the secret was shown when it was made', async () => {
      await once.tollgate.text('keys', 'create', 'shown before');
      const ended = await once.tollgate.run(['keys', 'show', 'shown before', '--reveal']);
      expect(ended).toMatchObject(notShown(1, 'SECRET_REVEAL=once'));
    });
  });
});

describe('tollgate tokens', () => {
  it('makes, lists, rotates and revokes tokens, whose scopes hold', async () => {
    const made = await stage.tollgate.json(
      'tokens',
      'create',
      'reader',
      '--scope',
      'read-only',
      '--expires',
      '1d',
    );
    const asReader = { environment: { TOLLGATE_TOKEN: made.secret as string } };
    expect((await stage.tollgate.run(['keys', 'list'], asReader)).code).toBe(0);
    const denied = await stage.tollgate.run(['keys', 'create', 'x'], asReader);
    expect(denied).toMatchObject({ code: 3, stderr: expect.stringContaining('keys:write') });
    expect(await stage.tollgate.text('tokens', 'list')).not.toContain(made.secret);
    const unasked = await stage.tollgate.run(['tokens', 'rotate', 'reader', '--grace', '0s']);
    expect(unasked.stderr).toMatch(
      new RegExp(
        `^On ${stage.url}: The present secret of the token reader is rejected from the next request`,
      ),
    );
    const rotated = await stage.tollgate.json('tokens', 'rotate', 'reader', '--grace', '0s', '--yes');
    expect((await stage.tollgate.run(['whoami'], asReader)).code).toBe(3);
    const asRotated = { environment: { TOLLGATE_TOKEN: rotated.secret as string } };
    expect((await stage.tollgate.run(['whoami'], asRotated)).code).toBe(0);
    await stage.tollgate.text('tokens', 'delete', 'reader', '--yes');
    expect((await stage.tollgate.run(['whoami'], asRotated)).code).toBe(3);
    expect((await stage.tollgate.run(['tokens', 'create', 'bad', '--scope', 'everything'])).code).toBe(64);
  });
});

describe('--secret-file', () => {
  it('shows a new secret on standard error where the disk is full, and leaves no file', async () => {
    const { id } = await stage.tollgate.json('keys', 'create', 'full disk');
    const file = join(stage.directory, 'full-disk');
    const { code, stdout, stderr } = await stage.tollgate.run(
      ['keys', 'rotate', id, '--grace', '0s', '--yes', '--secret-file', file],
      { shellLine: WITH_FULL_DISK },
    );
    expect([code, stdout]).toEqual([1, '']);
    const [sentence, secret = ''] = stderr.trimEnd().split('\n');
    expect(sentence).toMatch(/can not be written \(\w+\)\. The change was made/);
    expect(await statusOf(stage.url, secret)).toBe(200);
    await expect(stat(file)).rejects.toThrow('ENOENT');
  });
});

describe('tollgate audit', () => {
  it('shows who changed what and why, and that nothing was taken out', async () => {
    const { id } = await stage.tollgate.json('keys', 'create', 'watched', '--reason', 'Grüße — "quoted"');
    expect(await stage.tollgate.json('audit', '--target', id, '--from', '1h')).toEqual([
      expect.objectContaining({ action: 'key.create', reason: 'Grüße — "quoted"' }),
    ]);
    expect(await stage.tollgate.json('audit', 'verify')).toMatchObject({ valid: true });
    expect((await stage.tollgate.run(['audit', '--action', 'key.frobnicate'])).code).toBe(64);
  });

  it('compares the log with what an earlier run has printed', async () => {
    const file = join(stage.directory, 'head.json');
    const verify = (...options: string[]) =>
      stage.tollgate.run(['audit', 'verify', ...options, '-o', 'json']);
    const first = await verify();
    await writeFile(file, first.stdout);
    await stage.admin.makeKey('after the head');
    const second = await verify('--expect', file);
    expect(second.code).toBe(0);
    expect(JSON.parse(second.stdout)).toMatchObject({ valid: true, expectation: 'met' });
    await writeFile(file, second.stdout);
    expect((await verify('--expect', file)).code).toBe(0);
    await writeFile(file, JSON.stringify({ ...JSON.parse(second.stdout), count: 1_000_000 }));
    const cut = await verify('--expect', file);
    expect(cut).toMatchObject({ code: 1, stderr: expect.stringContaining('The audit log was cut off') });
    await writeFile(file, JSON.stringify({ ...JSON.parse(second.stdout), valid: false }));
    const useless = await verify('--expect', file);
    expect(useless).toMatchObject({ code: 64, stderr: expect.stringContaining('for a log that is valid') });
    expect((await verify('--expect', join(stage.directory, 'none.json'))).code).toBe(64);
  });

  it('verifies the log of the gateway that the options choose, on either level', async () => {
    // An ignored --url or --retries leaves the command with a gateway that is not there.
    const environment = { TOLLGATE_URL: `http://127.0.0.1:${await freePort()}` };
    const chosen = ['--url', stage.url, '--retries', '0', '-o', 'csv'];
    for (const words of [
      ['audit', 'verify', ...chosen],
      ['audit', ...chosen, 'verify'],
    ]) {
      const { code, stdout } = await stage.tollgate.run(words, { environment });
      expect([code, stdout]).toEqual([0, expect.stringMatching(/^valid,entries,.*\r?\ntrue,/)]);
    }
    const unknown = await stage.tollgate.run(['audit', 'verify', '--context', 'unknown']);
    expect(unknown).toMatchObject({ code: 64, stdout: '', stderr: expect.stringContaining('unknown') });
  });

  it('follows the log: each new entry once, and none from before', async () => {
    await stage.tollgate.text('keys', 'create', 'before the look');
    await following(async (shown) => {
      await makeKeysUntil('followed', () => shown().length > 2);
      expect(shown().map(({ target }) => target.name)).not.toContain('before the look');
      expect(sequencesOf(shown())).toEqual(consecutiveFrom(shown()));
    });
  });

  it('follows the log also where more entries come at once than a page has', async () => {
    const keys = Array.from({ length: 1100 }, (_, n) => ({ externalId: `burst-${n}`, name: `burst ${n}` }));
    await following(async (shown) => {
      const isShown = (name: string) => shown().some(({ target }) => target.name === name);
      await makeKeysUntil('before the burst', () => isShown('before the burst'));
      const applied = stage.admin.call('POST', '/tollgate/config/apply', {
        owner: 'burst',
        config: { keys },
      });
      await makeKeysUntil('beside the burst', () => isShown('burst 1099'));
      expect(await applied).toMatchObject({ status: 200 });
      expect(sequencesOf(shown())).toEqual(consecutiveFrom(shown()));
    });
  });

  it('goes on where it was after the gateway was away, below one header of CSV', async () => {
    const port = Number(new URL(stage.url).port);
    const relay = await TcpRelay.start(port);
    const words = ['-o', 'csv', '--retries', '0', '--url', relay.urlOf(stage.url)];
    try {
      await followingWith(words, async (child) => {
        await makeKeysUntil('before it was away', () => child.stdout.includes('before it was away'));
        relay.reject();
        await until(() => child.stderr.includes('The audit log is read again in'));
        await stage.admin.makeKey('while it was away');
        relay.pass(port);
        await until(() => child.stdout.includes('while it was away'));
        const lines = child.stdout.split('\n');
        expect(lines[0]).toBe('at,action,target,actor,outcome,reason,address,changes,actor type');
        expect(lines.filter((line) => line.startsWith('at,'))).toHaveLength(1);
        expect(lines.filter((line) => line.includes('while it was away'))).toHaveLength(1);
      });
    } finally {
      await relay.stop();
    }
  });

  it.each([
    ['--from', '1h'],
    ['--to', '2099-01-01'],
  ])('ends at once where its first look fails, with %s %s', async (...words) => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const ended = await stage.tollgate.run(['audit', '--follow', ...words, '--retries', '0', '--url', url]);
    expect(ended).toMatchObject({ code: 75, stdout: '' });
  });

  it('ends when its token is deleted while it follows the log', async () => {
    const { secret } = await stage.tollgate.json('tokens', 'create', 'follower', '--scope', 'audit:read');
    const tokenFile = join(stage.directory, 'follower');
    await writeFile(tokenFile, secret);
    await followingWith(['-o', 'ndjson', '--token-file', tokenFile], async (child) => {
      await makeKeysUntil('before the deletion', () => child.stdout !== '');
      await stage.tollgate.text('tokens', 'delete', 'follower', '--yes');
      await until(() => child.exitCode !== null);
      expect(child.exitCode).toBe(3);
    });
  });
});

interface ShownEntry {
  readonly auditId: string;
  readonly target: { readonly name: string | null };
}

/** A command that runs, with what it has written so far. */
interface RunningCommand {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number | null;
}

/** Runs work beside `tollgate audit --follow`, with the entries that it has shown so far. */
function following(work: (shown: () => readonly ShownEntry[]) => Promise<void>): Promise<void> {
  return followingWith(['-o', 'ndjson'], (child) =>
    work(() =>
      child.stdout
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line)),
    ),
  );
}

/** Runs work beside `tollgate audit --follow` with these words. */
async function followingWith(
  words: readonly string[],
  work: (child: RunningCommand) => Promise<void>,
): Promise<void> {
  const child = spawn(process.execPath, [resolve('bin/tollgate.js'), 'audit', '--follow', ...words], {
    env: { PATH: process.env.PATH ?? '', ...stage.tollgate.environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  try {
    await work({
      get stdout() {
        return stdout;
      },
      get stderr() {
        return stderr;
      },
      get exitCode() {
        return child.exitCode;
      },
    });
  } finally {
    await endChild(child);
  }
}

/** The command looks every two seconds. */
function makeKeysUntil(name: string, claim: () => boolean): Promise<void> {
  const isTrue = async () => {
    await stage.admin.makeKey(name);
    return claim();
  };
  return until(isTrue, { longestPauseMs: 250 });
}

function sequencesOf(entries: readonly ShownEntry[]): readonly number[] {
  return entries.map(({ auditId }) => Number(auditId.replace('aud_', '')));
}

/** As many numbers, without a gap. */
function consecutiveFrom(entries: readonly ShownEntry[]): readonly number[] {
  const [first = 0] = sequencesOf(entries);
  return entries.map((_, index) => first + index);
}

describe('tollgate top', () => {
  it('shows the busiest keys with their names', async () => {
    const { secret } = await stage.tollgate.json('keys', 'create', 'busy');
    for (let index = 0; index < 20; index += 1) await statusOf(stage.url, secret);
    await until(async () => {
      const [busiest] = await stage.tollgate.json('top', '--count', '1');
      return busiest?.name === 'busy' && busiest.requests === 20;
    });
    expect(await stage.tollgate.text('top', '-o', 'table')).toMatch(/^ID +NAME +REQUESTS/);
  });

  it('looks again on a terminal after the gateway was away', async () => {
    const looks = { rows: [{ consumerApiKeyId: 'key_a', consumerApiKeyName: 'busy', requests: 1 }] };
    const statuses = [200, 503, 200, 401];
    let requests = 0;
    const server = createServer((_req, res) => {
      res.writeHead(statuses[requests] ?? 500, { 'content-type': 'application/json', 'x-request-id': 'a' });
      requests += 1;
      res.end(JSON.stringify(looks));
    });
    const url = `http://127.0.0.1:${await listenOnLoopback(server)}`;
    const environment = { ...stage.tollgate.environment, TOLLGATE_URL: url };
    try {
      const ended = await runOnTerminal(['top', '--every', '1s', '--retries', '0'], { environment });
      expect(ended.code).toBe(3);
      expect(ended.stdout.match(/key_a {2}busy/g)).toHaveLength(2);
      expect(ended.stdout).toContain('The usage is read again in 0.25 s.');
    } finally {
      server.close();
    }
  });

  it('ends where its first look fails', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    expect((await stage.tollgate.run(['top', '--retries', '0', '--url', url])).code).toBe(75);
  });

  it.each(['0', '101', 'many'])('shows 1 to 100 keys, and not %s', async (count) => {
    const { code, stderr } = await stage.tollgate.run(['top', '--count', count]);
    expect(code).toBe(64);
    expect(stderr).toContain('It must be a whole number from 1 to 100.');
  });

  it.each(['0s', '25d'])('looks again after a second to a day, and not after %s', async (pause) => {
    const { code, stderr } = await stage.tollgate.run(['top', '--every', pause]);
    expect(code).toBe(64);
    expect(stderr).toContain('It must be from 1s to 24h.');
  });

  it('shows them without names to a token that may only read usage', async () => {
    const { secret } = await stage.tollgate.json('tokens', 'create', 'usage only', '--scope', 'usage:read');
    const environment = { TOLLGATE_TOKEN: secret };
    const { code, stdout } = await stage.tollgate.run(['top', '--count', '1', '-o', 'json'], { environment });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject([{ name: null, requests: 20 }]);
  });

  it('reveals no secret to find out names', async () => {
    expect(await stage.tollgate.json('audit', '--action', 'key.show-secret')).toEqual([]);
  });
});
