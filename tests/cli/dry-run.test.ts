import { beforeAll, describe, expect, it } from '@jest/globals';
import { withTollgate } from './support/with-tollgate.ts';

const stage = withTollgate();
const ABSENT = 'key_00000000000000000000000000';
const ABSENT_LINK = 'hnd_00000000000000000000000000';

beforeAll(async () => {
  for (const plan of ['used', 'unused'])
    await stage.tollgate.text('plans', 'create', plan, '--limit', '5', '--period', 'hour');
  await stage.tollgate.text('keys', 'create', 'plain', '--plan', 'used');
  await stage.tollgate.text('keys', 'create', 'rotating', '--plan', 'used');
  await stage.tollgate.text('keys', 'rotate', 'rotating', '--grace', '1h');
  await stage.tollgate.text('tokens', 'create', 'rotating', '--scope', 'read-only');
  await stage.tollgate.text('tokens', 'rotate', 'rotating', '--grace', '1h');
});

describe('a dry run', () => {
  it.each([
    ['a plan that keys are bound to', ['plans', 'delete', 'used'], 5],
    ['a plan whose keys would get the same plan', ['plans', 'delete', 'used', '--rebind-to', 'used'], 64],
    ['a plan whose keys would get no plan', ['plans', 'delete', 'used', '--rebind-to', 'absent'], 4],
    ['the default plan', ['plans', 'delete', 'default', '--rebind-to', 'used'], 5],
    ['an absent key to rotate', ['keys', 'rotate', ABSENT, '--grace', '1h'], 4],
    ['a rotation beside another one', ['keys', 'rotate', 'rotating', '--grace', '1h'], 5],
    ['an absent key whose rotation would end', ['keys', 'end-rotation', ABSENT, '--keep', 'new'], 4],
    ['a rotation that is not under way', ['keys', 'end-rotation', 'plain', '--keep', 'new'], 5],
    ['counters of an absent key', ['limits', 'reset', ABSENT], 4],
    ['an absent limit', ['limits', 'reset', 'plain', '--limit-id', 'absent'], 4],
    ['a customer where no limit is for each', ['limits', 'reset', 'plain', '--customer', 'acme'], 4],
    ['a link of an absent key', ['keys', 'revoke-handover', ABSENT, ABSENT_LINK], 4],
    ['an absent link', ['keys', 'revoke-handover', 'plain', ABSENT_LINK], 4],
    ['a rotation of a token beside another one', ['tokens', 'rotate', 'rotating', '--grace', '1h'], 5],
  ])('rejects %s, as the command itself does', async (_what, words, code) => {
    const dry = await stage.tollgate.run([...words, '--dry-run']);
    expect(dry).toMatchObject({ code, stdout: '', stderr: expect.not.stringContaining('Dry run') });
    expect((await stage.tollgate.run([...words, '--yes'])).code).toBe(code);
  });

  it('rejects a link that was used, and revokes none that was not', async () => {
    const used = await stage.tollgate.json('keys', 'handover', 'plain');
    const open = await stage.tollgate.json('keys', 'handover', 'plain');
    const revealed = await fetch(`${stage.url}/tollgate/self/handover/reveal`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token: new URL(used.url).hash.slice(1) }),
    });
    expect(revealed.status).toBe(200);
    for (const option of ['--dry-run', '--yes']) {
      const words = ['keys', 'revoke-handover', 'plain', used.handoverId, option];
      expect([option, (await stage.tollgate.run(words)).code]).toEqual([option, 1]);
    }
    const dry = await stage.tollgate.run(['keys', 'revoke-handover', 'plain', open.handoverId, '--dry-run']);
    expect([dry.code, dry.stderr]).toEqual([0, expect.stringMatching(`^Dry run on ${stage.url}: The link `)]);
    const links = await stage.tollgate.json('keys', 'handovers', 'plain');
    expect(links).toContainEqual(expect.objectContaining({ handoverId: open.handoverId, state: 'open' }));
  });

  it.each([
    ['plans', 'delete', 'unused'],
    ['plans', 'delete', 'used', '--rebind-to', 'unused'],
    ['keys', 'rotate', 'plain', '--grace', '1h'],
    ['keys', 'end-rotation', 'rotating', '--keep', 'new'],
    ['limits', 'reset', 'plain', '--limit-id', 'main'],
    ['tokens', 'rotate', 'rotating', '--grace', '0s'],
  ])('of %s %s %s says what would be done, and does nothing', async (...words) => {
    const before = await stage.tollgate.json('audit', '--all');
    const dry = await stage.tollgate.run([...words, '--dry-run']);
    const said = expect.stringMatching(`^Dry run on ${stage.url}: The `);
    expect(dry).toMatchObject({ code: 0, stdout: '', stderr: said });
    expect(await stage.tollgate.json('audit', '--all')).toEqual(before);
  });
});
