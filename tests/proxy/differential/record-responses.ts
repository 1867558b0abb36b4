import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { fingerprint, YARDSTICKS } from './comparison.ts';
import { type Contender, overLanes, sendTo } from './contender.ts';
import { AFTER, readCorpus } from './corpus.ts';
import { startHaproxy, startNginx } from './debian-proxies.ts';

/** Writes `corpus/recorded.json`: what the nginx and the HAProxy of this machine forward of each case. */
const ROOT = resolve(import.meta.dirname, '../../..');
const FILE = resolve(ROOT, 'tests/proxy/corpus/recorded.json');
const START = { nginx: startNginx, haproxy: startHaproxy };

async function record(contender: Contender): Promise<object> {
  const cases = readCorpus();
  const outcomes = await overLanes(contender.lanes, cases, (lane, { bytes }) => sendTo(lane, bytes + AFTER));
  return {
    version: contender.version,
    forwarded: Object.fromEntries(
      cases.map(({ name }, i) => [name, outcomes[i]?.forwarded.map(fingerprint) ?? []]),
    ),
  };
}

const recorded: Record<string, object> = {};
for (const name of YARDSTICKS) {
  const contender = await START[name](8);
  if (contender === undefined) throw new Error(`${name} is not there and can't be installed`);
  recorded[name] = await record(contender);
  await contender.stop();
}
await writeFile(FILE, JSON.stringify(recorded));
await promisify(execFile)(resolve(ROOT, 'node_modules/.bin/biome'), ['format', '--write', FILE]);
