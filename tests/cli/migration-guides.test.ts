import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { statusOf } from '../support/burst.ts';
import { requireProgram } from '../support/debian-package.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';
import { GuideReader } from './support/play-guide.ts';
import { Administrator } from './support/run-tollgate.ts';

const EXAMPLES = resolve('docs/examples');

let fleet: Fleet;
let tollgate: Administrator;
let directory: string;
let reader: GuideReader;
const url = (): string => fleet.replicas[0]?.url ?? '';

beforeAll(async () => {
  await Promise.all([requireProgram('curl', 'curl'), requireProgram('jq', 'jq')]);
  fleet = await startInProcessFleet(1);
  tollgate = new Administrator(url());
});
afterAll(() => fleet?.stop());
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-guide-'));
  reader = new GuideReader(directory, tollgate.environment);
  await reader.install();
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const play = (page: string, heading: string, settings?: Readonly<Record<string, string>>) =>
  reader.play({ page, heading }, settings && { settings });

const example = (name: string, as = name) => copyFile(join(EXAMPLES, name), join(directory, as));

/** Plays the common steps of a guide: the dry run, the import, and the look at the result. */
async function move(page: string) {
  const dryRun = await play(page, '## 2. See what would be imported');
  const moved = await play(page, '## 3. Import');
  return { dryRun: JSON.parse(dryRun.stdout), moved: JSON.parse(moved.stdout) };
}

describe('the guides that move keys here', () => {
  it('from Kong: make what the dry run says, short keys by their digests', async () => {
    await example('kong.json', 'kong.yaml');
    const { dryRun, moved } = await move('migrate-from-kong.md');
    expect(dryRun).toMatchObject({ keys: { made: 3, notCarried: 1 } });
    expect(moved).toMatchObject({ keys: { made: 4, notCarried: 0 } });
    expect(await statusOf(url(), 'partner-2019')).toBe(200);
    const look = await play('migrate-from-kong.md', '## 4. Look at the result');
    expect(look.stdout.match(/mobile-app/g)).toHaveLength(2);
  });

  it('from Tyk: read its interface, then make what the dry run says', async () => {
    const sample = (await readFile(join(EXAMPLES, 'tyk-keys.jsonl'), 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const policies = JSON.parse(await readFile(join(EXAMPLES, 'tyk-policies.json'), 'utf8'));
    // The part of Tyk's gateway API that the guide uses.
    const tyk = createServer((req, res) => {
      const key = /^\/tyk\/keys\/(\w+)$/.exec(req.url ?? '')?.[1];
      const body =
        req.url === '/tyk/policies'
          ? policies
          : req.url === '/tyk/keys'
            ? { keys: sample.map((one) => one.key) }
            : sample.find((one) => one.key === key)?.session;
      const isAllowed = req.headers['x-tyk-authorization'] === 'the-secret-of-tyk';
      res.writeHead(isAllowed && body !== undefined ? 200 : 403).end(JSON.stringify(body));
    });
    try {
      const port = await listenOnLoopback(tyk);
      await play('migrate-from-tyk.md', '## 1. Take the keys out of Tyk', {
        TYK: `http://127.0.0.1:${port}`,
        TYK_SECRET: 'the-secret-of-tyk',
      });
    } finally {
      tyk.close();
    }
    const { dryRun, moved } = await move('migrate-from-tyk.md');
    expect(dryRun).toMatchObject({ dryRun: true, keys: { made: 3 } });
    expect(moved).toMatchObject({ keys: { made: 3 }, notCarried: [{ what: 'expired key' }] });
    expect(await Promise.all(sample.map(({ key }) => statusOf(url(), key)))).toEqual([200, 401, 200, 401]);
  });

  it('from Unkey and from a table: make what the dry run says', async () => {
    await Promise.all([example('unkey-keys.json'), example('keys.csv')]);
    for (const [page, made] of [
      ['migrate-from-unkey.md', 2],
      ['migrate-from-middleware.md', 3],
    ] as const) {
      const { moved } = await move(page);
      expect(moved).toMatchObject({ dryRun: false, keys: { made } });
    }
    expect(await statusOf(url(), 'short-key')).toBe(200);
  });
});
