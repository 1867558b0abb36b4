import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { statusOf } from '../support/burst.ts';
import { withTollgate } from './support/with-tollgate.ts';

const stage = withTollgate();

beforeAll(async () => {
  await stage.tollgate.text('keys', 'create', 'present');
  await stage.tollgate.text('tokens', 'create', 'present', '--scope', 'ci');
  await stage.tollgate.text('webhooks', 'create', 'https://1.1.1.1', '--event', '*', '--description', 'p');
});

describe('a command with -o id', () => {
  it.each([
    'keys create new',
    'keys create new --handover 1h',
    'keys rotate present --grace 0s --yes',
    'keys rotate present --grace 1h --dry-run',
    'keys handover present',
    'tokens create new --scope ci',
    'tokens rotate present --grace 1h',
    'webhooks create https://1.1.1.1 --event *',
    'webhooks rotate p --grace 0s --yes',
  ])('makes nothing that it would not show: %s', async (words) => {
    const before = await stage.tollgate.json('audit', '--all');
    const { code, stdout, stderr } = await stage.tollgate.run([...words.split(' '), '-o', 'id']);
    expect([code, stdout]).toEqual([64, '']);
    expect(stderr).toMatch(/^With -o id what is shown only once would be lost: add .*another -o\.\n$/);
    expect(await stage.tollgate.json('audit', '--all')).toEqual(before);
  });

  it('and a --secret-file shows the id, and keeps the secret in the file', async () => {
    const file = join(stage.directory, 'secret');
    const words = ['keys', 'create', 'kept', '-o', 'id', '--secret-file', file];
    expect(await stage.tollgate.text(...words)).toMatch(/^key_\w{26}\n$/);
    expect(await statusOf(stage.url, (await readFile(file, 'utf8')).trim())).toBe(200);
  });
});

describe('a new secret that standard output does not take', () => {
  const lost = (reason: string) => ({
    code: 1,
    stderr: expect.stringMatching(
      new RegExp(`^The change was made, but its secret .* is lost: .*tokens rotate.*\\n${reason}$`),
    ),
  });

  it('is said to be lost where the disk is full', async () => {
    const words = ['tokens', 'create', 'on a full disk', '--scope', 'ci'];
    const ended = await stage.tollgate.run(words, { shellLine: 'exec "$@" > /dev/full' });
    expect(ended).toMatchObject(lost('Standard output can not be written \\(ENOSPC\\)\\.\\n'));
    expect(await stage.tollgate.text('tokens', 'list', '-o', 'csv')).toContain(',on a full disk,');
  });

  it('is said to be lost where the reader of the pipe is gone', async () => {
    const ended = await stage.tollgate.run(['keys', 'create', 'unread'], {
      onStart: ({ stdout }) => stdout?.destroy(),
    });
    expect(ended).toMatchObject(lost(''));
  });

  it('is said to be lost where a configuration makes it', async () => {
    const file = join(stage.directory, 'lost.json');
    await writeFile(file, JSON.stringify({ keys: [{ externalId: 'lost', name: 'lost' }] }));
    const ended = await stage.tollgate.run(['config', 'apply', file, '--owner', 'lost', '--yes'], {
      shellLine: 'exec "$@" > /dev/full',
    });
    expect(ended).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('its secret could not be shown'),
    });
  });
});
