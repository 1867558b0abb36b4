import { describe, expect, it } from '@jest/globals';
import { withTollgate } from './support/with-tollgate.ts';

const stage = withTollgate({ AUTHORIZE_PORT: '0' });

describe('tollgate verify', () => {
  it('says whether a request is allowed, and ends with 6 where it is not', async () => {
    await stage.tollgate.text('plans', 'create', 'once', '--limit', '1', '--period', 'day');
    const { secret } = await stage.tollgate.json('keys', 'create', 'verified', '--plan', 'once');
    const verify = (...words: readonly string[]) =>
      stage.tollgate.run(['verify', ...words], { input: `${secret}\n` });
    expect(await verify('--no-count', '-o', 'table')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('main 1'),
    });
    const allowed = await verify('--method', 'POST', '--path', '/orders', '--json');
    expect(allowed.code).toBe(0);
    expect(JSON.parse(allowed.stdout)).toMatchObject({
      allowed: true,
      name: 'verified',
      limits: [{ remaining: 0 }],
    });
    const limited = await verify('-o', 'json');
    expect(limited).toMatchObject({ code: 6, stderr: expect.stringContaining('429 limited') });
    expect(JSON.parse(limited.stdout)).toMatchObject({ allowed: false, status: 429 });
    expect(`${limited.stdout}${limited.stderr}`).not.toContain(secret);
  });

  it('takes no address that is none', async () => {
    const { code, stderr } = await stage.tollgate.run(['verify', '--address', '203.0.113'], {
      input: 'tg_wrong\n',
    });
    expect([code, stderr]).toEqual([64, expect.stringContaining('--address must be')]);
  });

  it('takes no secret from an argument, and knows a wrong one', async () => {
    const argument = await stage.tollgate.run(['verify', 'tg_secret']);
    expect([argument.code, argument.stderr.includes('tg_secret')]).toEqual([64, false]);
    expect(await stage.tollgate.run(['verify'], { input: 'tg_wrong\n' })).toMatchObject({
      ...{ code: 6, stderr: expect.stringContaining('401 invalid_api_key') },
    });
  });
});
