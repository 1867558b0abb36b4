import { readFile } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { distinctNames } from '../../src/cli/sizing/distinct-names.ts';
import { readScaleConstants } from '../../src/cli/sizing/scale-constants.ts';
import { type Demand, sizeInstallation } from '../../src/cli/sizing/size-installation.ts';
import { POSTGRES_CONNECTIONS } from '../../src/storage/postgres/postgres-connection.ts';
import { EXAMPLES, SIZING_GUIDE, sizingGuideWithFigures } from '../support/sizing-guide.ts';
import { runInProcess } from './support/run-in-process.ts';

const size = (...words: readonly string[]) => runInProcess(['size', ...words], {});
const constants = readScaleConstants();

const demands: fc.Arbitrary<Demand> = fc.record({
  rps: fc.integer({ min: 1, max: 10_000_000 }),
  keys: fc.integer({ min: 1_000_000, max: 1_000_000_000 }),
  activeKeys: fc.integer({ min: 1, max: 1_000_000 }),
  customers: fc.integer({ min: 1, max: 1_000_000 }),
  endpoints: fc.integer({ min: 1, max: 1_000_000 }),
  months: fc.integer({ min: 1, max: 1200 }),
  dailyMonths: fc.integer({ min: 1, max: 1200 }),
  windows: fc.integer({ min: 1, max: 16 }),
});

it('docs/sizing.md has what the constants say (npm run sizing-guide writes it)', async () => {
  expect(await readFile(SIZING_GUIDE, 'utf8')).toBe(await sizingGuideWithFigures());
});

it('the memory of a pod is enough for the keys that the docs say', async () => {
  const [, mebibytes, keys = ''] =
    /limit a pod to (\d+)Mi, which is enough for about ([\d ]+) keys/.exec(
      await readFile(SIZING_GUIDE, 'utf8'),
    ) ?? [];
  const demand = { ...(EXAMPLES.large as Demand), activeKeys: Number(keys.replace(' ', '')) };
  const { memoryBytesPerReplica } = sizeInstallation(demand, constants);
  expect(memoryBytesPerReplica).toBeLessThanOrEqual(Number(mebibytes) * 2 ** 20);
  const deployment = await readFile('k8s/base/deployment.yaml', 'utf8');
  expect(deployment).toContain(`for about ${keys} keys`);
  expect(deployment).toContain(`memory: ${mebibytes}Mi`);
});

describe('tollgate size', () => {
  it('says as JSON what the page says', async () => {
    const large = await size('--rps', '20000', '--keys', '1000000', '--months', '13', '-o', 'json');
    expect(large).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(large.stdout)).toEqual(sizeInstallation(EXAMPLES.large as Demand, constants));
  });

  it('counts bytes in whole numbers', async () => {
    const { stdout } = await size('--rps', '997', '--keys', '1009', '-o', 'json');
    const bytes = Object.entries(JSON.parse(stdout)).filter(([name]) => /Bytes/.test(name));
    expect(bytes).toHaveLength(3);
    expect(bytes.filter(([, value]) => !Number.isSafeInteger(value))).toEqual([]);
  });

  it('shows a table, and the limits beside it', async () => {
    const { code, stdout, stderr } = await size('--rps', '500', '--keys', '1000', '-o', 'table');
    expect(code).toBe(0);
    expect(stdout).toContain('memory of a replica');
    expect(stderr).toContain('one Redis server');
  });

  it.each([
    [['--keys', '1'], '--rps'],
    [['--rps', '1'], '--keys'],
    [['--rps', '0', '--keys', '1'], 'from 1 to'],
    [['--rps', '1e3', '--keys', '1'], 'whole number'],
    [['--rps', '-5', '--keys', '1'], 'whole number'],
    [['--rps', '1', '--keys', '1', '--windows', '17'], 'from 1 to 16'],
    [['--rps', '1', '--keys', '1', '--active-keys', '2'], '--active-keys must not be more than --keys'],
  ])('rejects %j', async (words, message) => {
    const { code, stdout, stderr } = await size(...words);
    expect([code, stdout]).toEqual([64, '']);
    expect(stderr).toContain(message);
  });
});

it('the names that requests touch are those of a sum over all keys', () => {
  const [requests, keys, names] = [50_000, 20_000, 5];
  let sum = 0;
  for (let rank = 1; rank <= keys; rank += 1) {
    const share = Math.log(1 + 1 / rank) / Math.log(keys + 1);
    sum += names * (1 - Math.exp((-requests * share) / names));
  }
  expect(Math.abs(distinctNames(requests, keys, names) / sum - 1)).toBeLessThan(1e-3);
});

describe('a size', () => {
  it('never shrinks when anything of the demand grows', () => {
    const names = [
      'rps',
      'keys',
      'activeKeys',
      'customers',
      'endpoints',
      'months',
      'dailyMonths',
      'windows',
    ] as const;
    const measures = [
      'replicas',
      'cores',
      'memoryBytesPerReplica',
      'redisMasters',
      'redisMemoryBytes',
    ] as const;
    const all = [...measures, 'postgresDiskBytes', 'postgresRowsPerSecond', 'postgresConnections'] as const;
    fc.assert(
      fc.property(demands, fc.constantFrom(...names), (demand, name) => {
        const [one, other] = [demand, { ...demand, [name]: demand[name] + 1 }].map((each) =>
          sizeInstallation(each, constants),
        );
        for (const measure of all) {
          // The numbers of keys are those of an integral.
          expect(other?.[measure]).toBeGreaterThanOrEqual((one?.[measure] ?? 0) * (1 - 1e-3));
        }
      }),
    );
  });

  it('has room for a peak and for one replica that is missing', () => {
    fc.assert(
      fc.property(demands, (demand) => {
        const { cores, replicas, redisCores, redisMasters } = sizeInstallation(demand, constants);
        expect(cores).toBeLessThanOrEqual(replicas * 0.6);
        expect(redisCores).toBeLessThanOrEqual(redisMasters * 0.7);
      }),
    );
  });

  it('counts the connections that a process may have', () => {
    const demand = { ...(EXAMPLES.small as Demand), replicas: 16 };
    expect(sizeInstallation(demand, constants).postgresConnections).toBe(16 * POSTGRES_CONNECTIONS);
  });
});
