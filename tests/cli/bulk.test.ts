import { createServer } from 'node:http';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';
import type { EndedCommand } from './support/run-tollgate.ts';
import { withTollgate } from './support/with-tollgate.ts';

const stage = withTollgate();
const ABSENT = 'key_00000000000000000000000000';
const END = '2090-01-01T00:00:00Z';
const main = { limit: 7 };
const ABSENT_JOB = 'job_00000000000000000000000000';

beforeAll(async () => {
  for (const plan of ['gold', 'silver'])
    await stage.tollgate.text('plans', 'create', plan, '--limit', '5', '--period', 'hour');
});

/** Makes keys with this tag, which each test has for itself. */
async function makeKeys(tag: string, count: number, fields: object = {}): Promise<readonly string[]> {
  const keys = Array.from({ length: count }, (_, index) => ({
    ...{ name: `${tag} ${index}`, tags: [tag], ...fields },
    secret: `secret-of-the-key-${tag}-${index}-`.padEnd(40, '0'),
  }));
  const { status } = await stage.admin.call('POST', '/api-keys/import', { keys });
  expect(status).toBe(200);
  return (await listed(tag)).map(({ consumerApiKeyId }) => consumerApiKeyId);
}

interface Listed {
  readonly consumerApiKeyId: string;
  readonly enabled: boolean;
}

function listed(tag: string): Promise<readonly Listed[]> {
  return stage.tollgate.json('keys', 'list', '--tag', tag, '--all');
}

function bulk(...words: readonly string[]): Promise<EndedCommand> {
  return stage.tollgate.run(['keys', 'bulk', ...words]);
}

describe('tollgate keys bulk', () => {
  it('changes the keys that "keys list" shows, and waits for the end', async () => {
    const ids = await makeKeys('changed', 3);
    await stage.tollgate.text('keys', 'update', ids[0] ?? '', '--external-id', 'acme');
    const filter = ['--tag', 'changed', '--external-id', 'acme', '--search', 'changed', '--status', 'active'];
    expect(await stage.tollgate.json('keys', 'list', ...filter)).toHaveLength(1);
    const { code, stdout, stderr } = await bulk('disable', ...filter, '--yes', '--reason', 'unpaid');
    expect([code, stderr]).toEqual([0, '']);
    expect(JSON.parse(stdout)).toMatchObject({
      ...{ action: 'disable', state: 'done', done: 1, total: 1, failedCount: 0, reason: 'unpaid' },
    });
    const disabled = (await listed('changed')).filter(({ enabled }) => !enabled);
    expect(disabled.map(({ consumerApiKeyId }) => consumerApiKeyId)).toEqual([ids[0]]);
  });

  it.each([
    [['add-tags', '--edit-tag', 'b', '--edit-tag', 'c'], { tags: ['a'] }, { tags: ['a', 'b', 'c'] }],
    [['remove-tags', '--edit-tag', 'b', '--edit-tag', 'c'], { tags: ['a', 'b', 'c'] }, { tags: ['a'] }],
    [['set-plan', '--to-plan', 'gold'], { rateLimitId: 'silver' }, { rateLimitId: 'gold' }],
    [['set-plan', '--clear'], { rateLimitId: 'silver' }, { rateLimitId: null }],
    [['set-expiry', '--expires', END], {}, { expiresAt: END }],
    [['set-expiry', '--expires', '30d'], {}, { expiresAt: expect.stringMatching(/^\d{4}-.*Z$/) }],
    [['set-expiry', '--clear'], { expiresAt: END }, { expiresAt: null }],
    [
      ['clear-override', '--override', 'burst'],
      { overrides: { main, burst: main } },
      { overrides: { main } },
    ],
    [['clear-override'], { overrides: { main, burst: main } }, { overrides: {} }],
    [['enable'], { enabled: false }, { enabled: true }],
  ])('does %j to a key that is named', async (words, before, after) => {
    const name = words.join(' ');
    const body = { name, ...before };
    const { status } = await stage.admin.call('POST', '/consumer-api-key/create', body);
    expect(status).toBe(201);
    expect(await bulk(...words, name, '--yes')).toMatchObject({ code: 0, stderr: '' });
    expect(await stage.tollgate.json('keys', 'show', name)).toMatchObject(after);
  });

  it('deletes keys, and says which of them were not there', async () => {
    const [id = ''] = await makeKeys('deleted', 1);
    const ended = await bulk('delete', id, ABSENT, '--yes');
    expect(ended).toMatchObject({ code: 4, stderr: '1 of 2 keys are not there.\n' });
    expect(JSON.parse(ended.stdout)).toMatchObject({
      ...{ state: 'done', done: 2, failedCount: 1 },
      failed: [{ consumerApiKeyId: ABSENT, code: 'key_not_found' }],
    });
    expect(await listed('deleted')).toEqual([]);
    const shown = await stage.tollgate.text('jobs', 'show', JSON.parse(ended.stdout).jobId, '-o', 'table');
    expect(shown).toMatch(/^FAILURES: +key_not_found 1$/m);
  });

  it('ends with 1 where a key could not be changed', async () => {
    const [id = ''] = await makeKeys('full', 1, { tags: ['full', ...numbered(19)] });
    const ended = await bulk('add-tags', '--edit-tag', 'one-more', id, '--yes');
    expect(ended).toMatchObject({ code: 1, stderr: '1 of 1 keys were not changed.\n' });
  });

  it('changes more than 100 keys only with --yes, and any only where that was said', async () => {
    await makeKeys('many', 101);
    const unasked = await bulk('disable', '--tag', 'many');
    expect(unasked).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(`^Dry run on ${stage.url}: .*101 keys.*--yes`),
    });
    expect(JSON.parse(unasked.stdout)).toEqual({ dryRun: true, action: 'disable', total: 101, notFound: 0 });
    const few = await bulk('disable', '--search', 'many 100');
    expect(few).toMatchObject({
      code: 64,
      stdout: '',
      stderr: expect.stringMatching(`^On ${stage.url}: .*for 1 key\\..*--yes`),
    });
    const dry = await bulk('disable', '--tag', 'many', '--yes', '--dry-run');
    expect(dry).toMatchObject({ code: 0, stderr: `Dry run on ${stage.url}: disable for 101 keys.\n` });
    expect((await listed('many')).every(({ enabled }) => enabled)).toBe(true);
    const done = await bulk('disable', '--tag', 'many', '--yes', '--expect', '101');
    expect(JSON.parse(done.stdout)).toMatchObject({ state: 'done', done: 101 });
    expect((await listed('many')).some(({ enabled }) => enabled)).toBe(false);
  });

  it('changes nothing where another number of keys is expected', async () => {
    await makeKeys('expected', 2);
    for (const words of [['--yes'], ['--dry-run']]) {
      const ended = await bulk('delete', '--tag', 'expected', '--expect', '3', ...words);
      expect(ended).toMatchObject({
        code: 5,
        stdout: '',
        stderr: expect.stringMatching(/about 2 keys.* is 3/),
      });
    }
    expect(await listed('expected')).toHaveLength(2);
  });

  it('fails in a dry run as the job would', async () => {
    const ended = await bulk('delete', ABSENT, '--dry-run');
    expect(ended).toMatchObject({ code: 4, stderr: expect.stringContaining('1 of 1 keys are not there.') });
  });

  it.each([
    ['no choice of keys', ['delete'], 64, 'one of the three'],
    ['a choice of keys in two ways', ['delete', ABSENT, '--tag', 'a'], 64, 'one of the three'],
    ['every key beside a filter', ['delete', '--every-key', '--tag', 'a'], 64, 'one of the three'],
    ['an unknown action', ['rename', ABSENT], 64, 'Allowed choices'],
    ['no tag to add', ['add-tags', '--tag', 'a'], 64, 'needs --edit-tag'],
    ['no plan to bind to', ['set-plan', '--plan', 'gold'], 64, 'needs --to-plan or --clear'],
    ['a plan that is set and cleared', ['set-plan', ABSENT, '--to-plan', 'gold', '--clear'], 64, 'exclude'],
    ['an option of another action', ['delete', '--edit-tag', 'a', '--tag', 'b'], 64, 'not for delete'],
    ['an empty tag', ['delete', '--tag', ''], 64, 'filter'],
    ['an empty owner', ['delete', '--external-id', ''], 64, 'filter'],
    ['an empty search', ['delete', '--search', ''], 64, 'filter'],
    ['an empty plan to bind to', ['set-plan', '--to-plan', '', ABSENT], 64, 'rateLimitId'],
    ['an unknown status', ['delete', '--status', 'idle'], 64, 'status'],
    ['an unknown plan', ['set-plan', '--to-plan', 'absent', '--plan', 'silver'], 4, 'plan'],
    ['an end in the past', ['set-expiry', '--expires', '2020-01-01T00:00:00Z', ABSENT], 64, 'expiresAt'],
    ['an unknown name', ['delete', 'absent name'], 4, 'absent name'],
    ['a number that is none', ['delete', '--tag', 'a', '--expect', 'few'], 64, 'whole number'],
  ])('rejects %s', async (_what, words, code, rule) => {
    const ended = await bulk(...words, '--yes');
    expect(ended).toMatchObject({ code, stdout: '', stderr: expect.stringContaining(rule) });
  });

  it('needs the scope of its action', async () => {
    await makeKeys('scoped', 1);
    const { secret } = await stage.tollgate.json('tokens', 'create', 'reader', '--scope', 'keys:read');
    const words = ['keys', 'bulk', 'delete', '--tag', 'scoped', '--yes'];
    const ended = await stage.tollgate.run(words, { environment: { TOLLGATE_TOKEN: secret } });
    expect(ended).toMatchObject({ code: 3, stdout: '', stderr: expect.stringContaining('keys:delete') });
  });
});

it('tollgate keys bulk waits for the end of its job also where the gateway is away meanwhile', async () => {
  const job = { ...{ jobId: ABSENT_JOB, total: 1, done: 0, failed: [], failedCount: 0 }, state: 'running' };
  const responses = [
    [200, { dryRun: true, action: 'enable', total: 1, notFound: 0 }],
    [202, job],
    [200, job],
    [503, { error: 'Try again shortly.', code: 'overloaded' }],
    [502, {}],
    [200, { ...job, state: 'done', done: 1 }],
  ] as const;
  let requests = 0;
  const server = createServer((_req, res) => {
    const [status, body] = responses[requests] ?? [500, {}];
    requests += 1;
    res.writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'a', connection: 'close' });
    res.end(JSON.stringify(body));
  });
  const url = `http://127.0.0.1:${await listenOnLoopback(server)}`;
  try {
    const words = ['keys', 'bulk', 'enable', '--every-key', '--yes', '--retries', '0', '--url', url];
    const { code, stdout, stderr } = await stage.tollgate.run(words);
    expect(stderr).toMatch(
      /^Try again shortly\.[^\n]* The job is read again in [^\n]+\n[^\n]+ The job is read again in [^\n]+\n$/,
    );
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { state: 'done' }]);
  } finally {
    server.close();
  }
});

describe('tollgate jobs', () => {
  it('lists, shows and cancels jobs', async () => {
    await makeKeys('cancelled', 100);
    const begun = await bulk('disable', '--tag', 'cancelled', '--yes', '--no-wait');
    expect(begun).toMatchObject({ code: 0, stderr: '' });
    const { jobId, total } = JSON.parse(begun.stdout);
    expect(total).toBe(100);
    expect((await stage.tollgate.text('jobs', 'list', '-o', 'id')).split('\n')[0]).toBe(jobId);
    const cancelled = await stage.tollgate.run(['jobs', 'cancel', jobId]);
    const shown = await stage.tollgate.json('jobs', 'show', jobId);
    expect(JSON.parse(cancelled.stdout)).toEqual(shown);
    // It may have ended before it was cancelled.
    expect([
      [0, 'cancelled'],
      [5, 'done'],
    ]).toContainEqual([cancelled.code, shown.state]);
  });

  it('can not cancel a job that has ended', async () => {
    const { jobId } = JSON.parse((await bulk('enable', '--tag', 'of-no-key', '--yes')).stdout);
    const ended = await stage.tollgate.run(['jobs', 'cancel', jobId]);
    expect(ended).toMatchObject({ code: 5, stderr: 'The job had ended already: it is done.\n' });
  });

  it.each(['show', 'cancel'])('ends with 4 at %s of an unknown job', async (command) => {
    const ended = await stage.tollgate.run(['jobs', command, ABSENT_JOB]);
    expect(ended).toMatchObject({ code: 4, stdout: '' });
    // Not another path of the gateway.
    const path = await stage.tollgate.run(['jobs', command, '../webhook']);
    expect(path).toMatchObject({ code: 64, stdout: '' });
  });
});

function numbered(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `t${index}`);
}
