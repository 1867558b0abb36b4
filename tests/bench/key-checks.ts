import { sql } from 'kysely';
import type { Records } from '../../src/storage/postgres/open-records.ts';
import { sampleChange, sampleKey, samplePlan, storeKeys } from '../support/sample-records.ts';
import { scriptCommand } from '../support/script-command.ts';
import { median } from './measure/statistics.ts';
import { printFigure } from './report/table.ts';
import { withRecords } from './setup/with-records.ts';

scriptCommand(
  'bench:key-checks',
  "What it costs to compare the cached keys of one process with Postgres, as each does every three seconds: the time of the gateway's process, and what is left for Postgres.",
).parse();

const KEYS = 10_000;
const PLANS = 100;
const ROUNDS = 30;
/** As the revalidator asks. */
const BATCH = 1000;
const INTERVAL_SECONDS = 3;

await withRecords(async (records) => measure(records, await makeKeys(records)));

async function makeKeys(records: Records): Promise<readonly string[]> {
  const planIds: string[] = [];
  for (let plan = 0; plan < PLANS; plan += 1) {
    const made = samplePlan();
    await records.plans.insert(made, sampleChange());
    planIds.push(made.id);
  }
  const made = Array.from({ length: KEYS }, (_, index) =>
    sampleKey({ planId: planIds[index % PLANS] ?? null }),
  );
  await storeKeys(records, made);
  return made.map(({ id }) => id);
}

async function measure({ keys, db }: Records, keyIds: readonly string[]): Promise<void> {
  await sql`analyze`.execute(db);
  const copies = keyIds.map((keyId) => ({ keyId, version: '1.1' }));
  const check = async (): Promise<void> => {
    for (let from = 0; from < KEYS; from += BATCH) {
      const outdated = await keys.findOutdated(copies.slice(from, from + BATCH));
      if (outdated.length > 0) throw new Error('a current copy was found outdated');
    }
  };
  for (let round = 0; round < 5; round += 1) await check();
  const [elapsed, own] = [[] as number[], [] as number[]];
  for (let round = 0; round < ROUNDS; round += 1) {
    const [startedAtMs, cpu] = [performance.now(), process.cpuUsage()];
    await check();
    const { user, system } = process.cpuUsage(cpu);
    elapsed.push(performance.now() - startedAtMs);
    own.push((user + system) / 1000);
  }
  const [checkMs, ownMs] = [median(elapsed), median(own)];
  printFigure(`check of ${KEYS} keys, from begin to end`, checkMs, 'ms');
  printFigure('of it in the process of the gateway', ownMs, 'ms');
  printFigure('a query of a thousand keys', checkMs / (KEYS / BATCH), 'ms');
  printFigure('share of a core of the gateway', ownMs / INTERVAL_SECONDS / 10, '%');
  printFigure('share of a core of Postgres, at most', (checkMs - ownMs) / INTERVAL_SECONDS / 10, '%');
}
