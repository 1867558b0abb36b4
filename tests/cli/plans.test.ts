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
