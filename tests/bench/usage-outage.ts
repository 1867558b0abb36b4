import { StoreUnavailable } from '../../src/errors.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { closeRedis } from '../../src/storage/redis/redis-connection.ts';
import { RedisLiveUsage } from '../../src/storage/redis/usage/redis-live-usage.ts';
import type { UsageBuffer } from '../../src/usage/usage-buffer.ts';
import { UsageFlusher } from '../../src/usage/usage-flusher.ts';
import type { UsageHistory } from '../../src/usage/usage-history.ts';
import { positiveNumber, scriptCommand } from '../support/script-command.ts';
import { findRedis } from '../support/test-stores.ts';
import { completed } from '../usage/support/sample-usage.ts';
import { connectForUsage, recordingOver, silent } from '../usage/support/usage-stores.ts';

const script = scriptCommand(
  'bench:usage-outage',
  'How much memory of Redis the usage of one replica takes while Postgres is away: 1000 requests a second of a simulated time, seven paths and three customers. It is written every 250 ms of that time, and a move to Postgres fails every 10 s.',
)
  .argument('[keys]', 'keys in use', positiveNumber(1_000_000), 10_000)
  .argument('[minutes]', 'simulated minutes', positiveNumber(100_000), 60)
  .option('--invented', 'each request has a new path of 256 bytes and a new customer of 105')
  .parse();
const [keys, minutes]: readonly [number, number] = [script.processedArgs[0], script.processedArgs[1]];
const { invented: isInvented = false }: { readonly invented?: boolean } = script.opts();

const REQUESTS_A_WRITE = 250;
const WRITES_A_MOVE = 40;
const WRITES_A_MINUTE = 240;
const PATHS = 7;
const CUSTOMERS = 3;
const MEGABYTE = 1e6;

const away = () => Promise.reject(new StoreUnavailable('postgres', new Error('away')));
const history = new Proxy({} as UsageHistory, { get: () => away });

const server = await findRedis();
const redis = await connectForUsage(server.url, { timeoutMs: 20_000 });
try {
  await simulate();
} finally {
  await closeRedis(redis);
  await server.stop();
}

async function simulate(): Promise<void> {
  const stores = { live: new RedisLiveUsage(redis, systemClock), history };
  const { buffer, writer } = recordingOver(stores);
  const flusher = new UsageFlusher({ ...stores, clock: systemClock, log: silent, intervalMs: 0 });
  const before = await usedMemory();
  let most = 0;
  for (let write = 1; write <= minutes * WRITES_A_MINUTE; write += 1) {
    for (let request = 0; request < REQUESTS_A_WRITE; request += 1) record(buffer, write, request);
    if (!(await writer.write())) throw new Error('a write failed: figures void');
    most = Math.max(most, (await usedMemory()) - before);
    if (write % WRITES_A_MOVE === 0) await flusher.flush();
    if (write % (5 * WRITES_A_MINUTE) === 0)
      process.stdout.write(
        `after ${write / WRITES_A_MINUTE} min: at most ${(most / MEGABYTE).toFixed(1)} MB\n`,
      );
  }
  process.stdout.write(`at most ${(most / MEGABYTE).toFixed(1)} MB\n`);
}

function record(buffer: UsageBuffer, write: number, request: number): void {
  const key = Math.floor(Math.random() * keys);
  const number = String(write * REQUESTS_A_WRITE + request);
  const names = isInvented
    ? { endpoint: `/${number.padStart(255, 'p')}`, customerId: number.padStart(105, 'c') }
    : { endpoint: `/v1/resources/${request % PATHS}`, customerId: `customer-${write % CUSTOMERS}` };
  const keyId = `key_${String(key).padStart(26, '0')}`;
  buffer.record(completed({ ...{ keyId, units: 1, responseTimeMs: 12.5, bytesOut: 932 }, ...names }));
}

async function usedMemory(): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
}
