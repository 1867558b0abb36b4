import { writeSync } from 'node:fs';
import { systemClock } from '../../../src/platform/clock.ts';
import { connectPostgres, serverOf } from '../../../src/storage/postgres/postgres-connection.ts';
import { PostgresUsageHistory } from '../../../src/storage/postgres/usage/postgres-usage-history.ts';
import { UsageFlusher } from '../../../src/usage/usage-flusher.ts';
import { requestOfMix } from './request-mix.ts';
import { requestsOf } from './sample-usage.ts';
import { openRedisUsage, silent, usageOver } from './usage-stores.ts';

/** What a process of a test is to do; its only argument, as JSON. */
export interface ReplicaTask {
  readonly redisUrl: string;
  readonly databaseUrl: string;
  /**
   * - `flush`: moves what is there, again and again, until it is killed.
   * - `record`: records these requests of the mix, then stops as a gateway does.
   * - `record-until-sigterm`: records the mix until SIGTERM, then stops as a gateway does.
   */
  readonly do: 'flush' | 'record' | 'record-until-sigterm';
  readonly keyIds: readonly string[];
  /** Ends itself with SIGKILL as soon as this step of a move is done. */
  readonly dieAfter?: 'take' | 'apply' | 'drop' | 'release';
  readonly from?: number;
  readonly to?: number;
}

const task = JSON.parse(process.argv[2] ?? '') as ReplicaTask;
const { live, close } = await openRedisUsage(task.redisUrl, { timeoutMs: 1000 });
const db = connectPostgres({ server: serverOf(task.databaseUrl), maxConnections: 4, onIdleError: () => {} });
/** Requests that Redis has confirmed. */
let confirmed = 0;
const write = live.write.bind(live);
live.write = async (writes) => {
  const outcomes = await write(writes);
  for (const [index, { recorded }] of writes.entries()) {
    if (outcomes[index] === 'written') confirmed += requestsOf(recorded);
  }
  return outcomes;
};
const history = new PostgresUsageHistory(db);

if (task.do === 'flush') {
  const stores = { live: mortal(live), history: mortal(history) };
  const flusher = new UsageFlusher({ ...stores, clock: systemClock, log: silent, intervalMs: 0 });
  // On a busy machine a round may fail.
  for (;;) await flusher.flush();
}

const usage = usageOver({ live, history, flushEveryMs: 100 });
usage.start();

let recorded = task.from ?? 0;
let hasSigterm = task.do === 'record';
process.once('SIGTERM', () => {
  hasSigterm = true;
});
while (task.do === 'record' ? recorded < (task.to ?? 0) : !hasSigterm) {
  for (let index = 0; index < 40; index += 1) {
    usage.recorder.record(requestOfMix(recorded, task.keyIds));
    recorded += 1;
    if (recorded === task.to) break;
  }
  // Synchronously, so that a process that is killed has said how far it got.
  writeSync(1, `${recorded} ${confirmed}\n`);
  await new Promise((resolve) => setTimeout(resolve, 2));
}
await end(await usage.stop(60_000));

async function end(isDone: boolean): Promise<never> {
  await close();
  await db.destroy();
  process.exit(isDone ? 0 : 1);
}

/** The store, but that the process dies when the step is done that the task says, unless the step had nothing to do. */
function mortal<Store extends object>(store: Store): Store {
  return new Proxy(store, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== 'function') return method;
      return async (...args: unknown[]) => {
        const result: unknown = await Reflect.apply(method, target, args);
        const didNothing = name === 'take' && (!Array.isArray(result) || result.length === 0);
        if (name === task.dieAfter && !didNothing) process.kill(process.pid, 'SIGKILL');
        return result;
      };
    },
  });
}
