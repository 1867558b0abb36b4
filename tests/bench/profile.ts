import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { positiveNumber, scriptCommand, wholeNumber } from '../support/script-command.ts';
import { type Stops, stopAll, stopAtSignals } from '../support/stops.ts';
import { MAIN_CASE } from './cases.ts';
import { type Load, runLoad } from './load/run-load.ts';
import { functionShares, type Shares } from './measure/function-shares.ts';
import { cpuNs } from './measure/process-counts.ts';
import { warmUp } from './measure/run-cases.ts';
import { spreadOf } from './measure/statistics.ts';
import { countSyscalls, SYSCALLS } from './measure/syscall-counts.ts';
import { decimal, factor, table } from './report/table.ts';
import { startRelay } from './setup/plain-gateways.ts';
import { findPrograms } from './setup/programs.ts';
import { startWorld, type World } from './setup/world.ts';

/** What is profiled: a gateway, or a relay that does nothing else. */
interface Subject {
  readonly title: string;
  readonly port: number;
  readonly load?: Partial<Load>;
  pids(): readonly number[];
}

const options = scriptCommand('bench:profile', 'Tells where the time of a warm proxied request goes.')
  .option('--rounds <number>', 'interleaved, of CPU time', wholeNumber(1), 5)
  .option('--seconds <number>', 'of each run', positiveNumber(), 1)
  .parse()
  .opts<{ rounds: number; seconds: number }>();
const { rounds, seconds } = options;
const CONNECTIONS = [1, 16, 64];
const FUNCTIONS = 30;

process.setMaxListeners(50);
const stops: Stops = [];
// Also while the world starts: then its processes end with this one.
stopAtSignals(() => stopAll(stops));
const world = await startWorld(await findPrograms(), {
  nodeArguments: [],
  against: undefined,
  envoy: undefined,
});
stops.push(world.stop);
try {
  const subjects = await startSubjects();
  for (const { port, load } of subjects) await warmUp(world, MAIN_CASE, port, load?.asks);
  for (const connections of CONNECTIONS) await compare(subjects, connections);
  for (const connections of CONNECTIONS) await profileFunctions(world, connections);
} finally {
  await stopAll(stops);
}

async function startSubjects(): Promise<readonly Subject[]> {
  const { programs, backend } = world;
  const relay = await startRelay({ programs, backendPort: backend.port }, 'node:http');
  stops.push(relay.stop);
  const replica = await world.startReplica({ decides: true });
  stops.push(replica.stop);
  const asked = { port: replica.authorizePort ?? 0, load: { asks: true }, pids: replica.pids };
  const candidates = world.candidates.filter(({ name }) => name !== 'tollgate-unwatched');
  return [
    ...candidates.map(({ name, port, pids }) => ({ title: name, port, pids })),
    { ...asked, title: 'tollgate, /authorize' },
    { ...relay, title: 'relay, client of node:http' },
  ];
}

/** CPU time in interleaved rounds, then system calls, of one number of connections. */
async function compare(subjects: readonly Subject[], connections: number): Promise<void> {
  const loadOf = ({ port, load }: Subject) => ({ benchCase: MAIN_CASE, port, connections, seconds, ...load });
  const cpu = new Map(subjects.map((subject) => [subject, [] as number[]]));
  for (let round = 0; round < rounds; round += 1) {
    for (const subject of subjects) {
      const before = cpuNs(subject.pids());
      const { requests } = await runLoad(world, loadOf(subject));
      cpu.get(subject)?.push((cpuNs(subject.pids()) - before) / 1000 / requests);
    }
  }
  const nginx = subjects.findIndex(({ title }) => title === 'nginx-lua');
  const yardstick = [...cpu.values()][nginx] ?? [];
  const rows: string[][] = [];
  for (const [subject, us] of cpu) {
    const ratio = spreadOf(us.map((one, round) => one / (yardstick[round] ?? Number.NaN)));
    const cells = await syscallCells(subject, loadOf(subject));
    const ofNginx = factor(ratio);
    rows.push([subject.title, decimal(spreadOf(us).median), decimal(Math.min(...us)), ofNginx, ...cells]);
  }
  const heads = ['', 'CPU µs', 'least', '× nginx', 'system calls', ...SYSCALLS, 'other'];
  process.stdout.write(`\n${connections} connections\n\n${table(heads, rows)}\n`);
}

async function syscallCells({ pids }: Subject, load: Load): Promise<readonly string[]> {
  const { perf } = world.programs;
  if (perf === undefined) return [];
  let requests = 0;
  const counts = await countSyscalls(perf, pids(), async () => {
    requests = (await runLoad(world, load)).requests;
  });
  const all = counts.values().reduce((sum, count) => sum + count, 0);
  const named = [...SYSCALLS, 'other'].map((name) => counts.get(name) ?? Number.NaN);
  return [all, ...named].map((count) => decimal(count / requests, 2));
}

/** A fresh replica that profiles itself; what is read of it is the last third of its load, without its start, its warm-up and its end. */
async function profileFunctions({ startReplica, directory }: World, connections: number): Promise<void> {
  const profiles = await mkdtemp(join(directory, 'profile-'));
  const startedAt = performance.now();
  let untilUs = 0;
  const replica = await startReplica({ nodeArguments: ['--cpu-prof', `--cpu-prof-dir=${profiles}`] });
  try {
    await runLoad(world, { benchCase: MAIN_CASE, port: replica.port, connections, seconds: 15 * seconds });
    untilUs = 1000 * (performance.now() - startedAt);
  } finally {
    await replica.stop();
  }
  const { parts, functions } = await functionShares(profiles, { fromUs: untilUs - 5e6 * seconds, untilUs });
  process.stdout.write(`\n${connections} connections, samples that were not idle\n\n`);
  process.stdout.write(`${sharesTable('part', parts)}\n\n${sharesTable('function', functions)}\n`);
}

function sharesTable(head: string, shares: Shares): string {
  const rows = shares.slice(0, FUNCTIONS).map(([name, share]) => [name, `${decimal(100 * share)} %`]);
  return table([head, 'share'], rows);
}
