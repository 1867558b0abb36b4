import { readFile } from 'node:fs/promises';
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
