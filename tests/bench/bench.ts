import { type Stops, stopAll, stopAtSignals } from '../support/stops.ts';
import { CASES } from './cases.ts';
import { measureDecisions } from './measure/decisions.ts';
import { measureGarbage } from './measure/garbage.ts';
import { measureLatencies } from './measure/latencies.ts';
import { measureMemory } from './measure/memory.ts';
import { type CaseResult, runCase } from './measure/run-cases.ts';
import { measureStartUp } from './measure/start-up.ts';
import { measureWorkers } from './measure/workers.ts';
import { readOptions } from './options.ts';
import { type BenchResult, fullLoadOf, type Measured } from './report/bench-result.ts';
import { publishFigures } from './report/figures.ts';
import { describeMachine } from './report/machine.ts';
import { markdownOf } from './report/markdown.ts';
import { publishTables, writeReport } from './report/write-report.ts';
import { findPrograms } from './setup/programs.ts';
import { startWorld, type World } from './setup/world.ts';

const say = (text: string): void => void process.stderr.write(`${text}\n`);

// One for each process that it starts, which is to end with it.
process.setMaxListeners(50);
const options = readOptions(process.argv.slice(2));
if (options.envoy === undefined) say('no --envoy and --ratelimit: no row of Envoy');
const stops: Stops = [];
// Also while the world starts: then its processes end with this one.
stopAtSignals(() => stopAll(stops));
const world = await startWorld(await findPrograms(), options);
stops.push(world.stop);
try {
  const startedAt = performance.now();
  let result: BenchResult | undefined;
  // Written after each part: what was measured is not lost when a later part fails.
  for await (const parts of measure(world)) {
    result = {
      measuredAt: new Date().toISOString(),
      machine: await describeMachine(world.programs),
      options,
      tookSeconds: Math.round((performance.now() - startedAt) / 1000),
      ...parts,
    };
    await writeReport(result);
  }
  if (result !== undefined) {
    if (options.isPublished) {
      await publishTables(result);
      await publishFigures(result);
    }
    process.stdout.write(markdownOf(result));
  }
} finally {
  await stopAll(stops);
}

/** Yields all that was measured so far, after each part. */
async function* measure(running: World): AsyncGenerator<Measured> {
  const cases: CaseResult[] = [];
  for (const benchCase of CASES.filter(({ id }) => options.caseIds.includes(id))) {
    say(benchCase.title);
    cases.push(await runCase(running, benchCase, options, say));
  }
  let measured: Measured = {
    cases,
    workers: undefined,
    decisions: undefined,
    latencies: [],
    garbage: undefined,
    garbageBefore: undefined,
    memory: undefined,
    startUp: undefined,
  };
  yield measured;
  say('workers');
  if (options.workerRounds > 0)
    measured = { ...measured, workers: await measureWorkers(running, options, say) };
  yield measured;
  say('decisions for other gateways');
  if (options.decisionRounds > 0)
    measured = { ...measured, decisions: await measureDecisions(running, options, say) };
  yield measured;
  say('latencies');
  for (const candidate of running.candidates) await candidate.restart?.();
  const rounds = options.isQuick ? 1 : options.rounds;
  const latencies = await measureLatencies(running, fullLoadOf(cases), { rounds, seconds: options.seconds });
  const garbage = await measureGarbage(running.startReplica, running, 2 * options.seconds);
  measured = { ...measured, latencies, garbage };
  if (running.startReplicaBefore !== undefined) {
    const garbageBefore = await measureGarbage(running.startReplicaBefore, running, 2 * options.seconds);
    measured = { ...measured, garbageBefore };
  }
  yield measured;
  say('memory');
  if (options.memoryRequests > 0)
    measured = { ...measured, memory: await measureMemory(running, options.memoryRequests) };
  yield measured;
  say('start-up');
  if (options.starts > 0) measured = { ...measured, startUp: await measureStartUp(running, options.starts) };
  yield measured;
}
