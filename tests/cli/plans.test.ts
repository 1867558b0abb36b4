import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { withTollgate } from './support/with-tollgate.ts';

const stage = withTollgate();

beforeAll(() => stage.tollgate.text('plans', 'create', 'gold', '--limit', '5', '--period', 'hour'));

describe('tollgate plans apply', () => {
  const planOf = async (id: string) => (await stage.tollgate.json('keys', 'show', id)).rateLimitId;
  const make = async (name: string): Promise<string> =>
    (await stage.tollgate.json('keys', 'create', name)).id;

  it('binds no key where one of the names is missing or ambiguous', async () => {
    const [first, last] = [await make('first'), await make('last')];
    for (const _ of [1, 2]) await make('twin');
    for (const [wrong, code] of [
      ['twin', 5],
      ['absent', 4],
    ] as const) {
      const ended = await stage.tollgate.run(['plans', 'apply', 'gold', 'first', wrong, 'last']);
      expect(ended).toMatchObject({ code, stderr: expect.stringContaining(wrong) });
    }
    expect([await planOf(first), await planOf(last)]).toEqual([null, null]);
  });

  it('says which keys are bound where a later request fails', async () => {
    const bound = await make('bound before');
    const absent = 'key_00000000000000000000000000';
    const { code, stderr } = await stage.tollgate.run(['plans', 'apply', 'gold', 'bound before', absent]);
    expect(code).toBe(4);
    expect(stderr).toMatch(/^The plan gold was bound to bound before\. The next request failed:\n.*id\.\n$/);
    expect(await planOf(bound)).toBe('gold');
  });
});

describe('tollgate plans preview', () => {
  it('says what a change would have limited, and where usage by hour says too little', async () => {
    await stage.tollgate.text('plans', 'create', 'drafted', '--limit', '5', '--period', 'hour');
    await stage.tollgate.text('keys', 'create', 'drafted key', '--plan', 'drafted');
    const change = ['plans', 'preview', 'drafted', '--limit', '2', '--period', 'minute'];
    const { code, stderr } = await stage.tollgate.run(change);
    expect(code).toBe(0);
    expect(stderr).toContain('Of 1 keys, 0 would have been limited; 0 were.');
    expect(stderr).toContain('The limit main (2 per minute) would have limited more');
    expect(await stage.tollgate.json(...change)).toMatchObject({ keys: 1, wouldBeLimited: 0, worst: [] });
    expect((await stage.tollgate.json('plans', 'show', 'drafted')).limit).toBe(5);
  });
});

describe('what show prints as YAML', () => {
  const fileOf = async (...words: readonly string[]): Promise<string> => {
    const file = join(stage.directory, `${words.join('-')}.yaml`);
    await writeFile(file, await stage.tollgate.text(words[0] ?? '', 'show', ...words.slice(1), '-o', 'yaml'));
    return file;
  };
  const withoutId = async (field: string, file: string): Promise<string> => {
    const path = `${file}.of-none.yaml`;
    await writeFile(path, (await readFile(file, 'utf8')).replace(new RegExp(`^${field}: .*\n`), ''));
    return path;
  };

  it('makes and changes plans', async () => {
    const { code } = await stage.tollgate.run(['plans', 'create', 'rich', '-f', '-'], {
      input: 'limit: 7\nperiod: day\ncosts: [{ path: /slow, cost: 5 }]\n',
    });
    expect(code).toBe(0);
    const file = await fileOf('plans', 'rich');
    const terms = { limit: 7, period: 'day', costs: [{ path: '/slow', cost: 5 }] };
    expect(await stage.tollgate.json('plans', 'create', 'copy', '-f', file)).toMatchObject({
      rateLimitId: 'copy',
      ...terms,
    });
    const ofNone = await withoutId('rateLimitId', file);
    for (const [plan, path] of [
      ['rich', file],
      ['gold', ofNone],
    ] as const)
      expect(await stage.tollgate.json('plans', 'update', plan, '-f', path)).toMatchObject({
        rateLimitId: plan,
        ...terms,
      });
  });

  it('makes and changes keys', async () => {
    await stage.tollgate.text('keys', 'create', 'model', '--tag', 'copied', '--override', 'main=9');
    const file = await fileOf('keys', 'model');
    const fields = { tags: ['copied'], overrides: { main: { limit: 9 } } };
    const { id } = await stage.tollgate.json('keys', 'create', 'copied key', '-f', file);
    expect(await stage.tollgate.json('keys', 'show', id)).toMatchObject({ name: 'copied key', ...fields });
    const other = (await stage.tollgate.json('keys', 'create', 'changed')).id;
    expect(await stage.tollgate.json('keys', 'update', 'model', '-f', file)).toMatchObject(fields);
    const ofNone = await withoutId('consumerApiKeyId', file);
    expect(await stage.tollgate.json('keys', 'update', other, '-f', ofNone)).toMatchObject(fields);
  });

  it('changes no other record than its own', async () => {
    for (const plan of ['mine', 'others'])
      await stage.tollgate.text('plans', 'create', plan, '--limit', '3', '--period', 'day');
    const plan = await fileOf('plans', 'mine');
    for (const command of ['update', 'preview']) {
      const ended = await stage.tollgate.run(['plans', command, 'others', '-f', plan]);
      expect(ended).toEqual({
        ...{ code: 64, stdout: '' },
        stderr: `${plan} is of another record: its rateLimitId is mine. Without that field it changes others.\n`,
      });
    }
    for (const name of ['my key', 'another key']) await stage.tollgate.text('keys', 'create', name);
    const key = await fileOf('keys', 'my key');
    const ended = await stage.tollgate.run(['keys', 'update', 'another key', '-f', key]);
    expect(ended).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('its consumerApiKeyId is key_'),
    });
  });

  it('has unknown fields rejected that someone added to it', async () => {
    const input = 'limit: 7\nperiod: day\ncreatedAt: 2026-01-01T00:00:00Z\ncolour: red\n';
    const { code, stderr } = await stage.tollgate.run(['plans', 'create', 'odd', '-f', '-'], { input });
    expect([code, stderr]).toEqual([64, expect.stringContaining('colour')]);
    expect(stderr).not.toContain('createdAt');
  });
});
