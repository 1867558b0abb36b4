import { CASES } from './cases.ts';
import { measureGarbage } from './measure/garbage.ts';
import { measureLatencies } from './measure/latencies.ts';
import { measureMemory } from './measure/memory.ts';
import { type CaseResult, runCase } from './measure/run-cases.ts';
import { measureStartUp } from './measure/start-up.ts';
import { measureWorkers } from './measure/workers.ts';
import { readOptions } from './options.ts';
import { type BenchResult, fullLoadOf } from './report/bench-result.ts';
import { describeMachine } from './report/machine.ts';
import { markdownOf } from './report/markdown.ts';
import { publishTables, writeReport } from './report/write-report.ts';
import { findPrograms } from './setup/programs.ts';
import { startWorld, type World } from './setup/world.ts';

const say = (text: string): void => void process.stderr.write(`${text}\n`);

const options = readOptions(process.argv.slice(2));
const world = await startWorld(await findPrograms(), options.nodeArguments);
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void world.stop().finally(() => process.exit(1)));
}
try {
  const result = await measure(world);
  await writeReport(options.directory, result);
  if (options.isPublished) await publishTables(result);
  process.stdout.write(markdownOf(result));
} finally {
  await world.stop();
}

async function measure(running: World): Promise<BenchResult> {
  const startedAt = performance.now();
  const cases: CaseResult[] = [];
  for (const benchCase of CASES.filter(({ id }) => options.caseIds.includes(id))) {
    say(benchCase.title);
    cases.push(await runCase(running, benchCase, options, say));
  }
  say('workers');
  const workers = options.workerRounds > 0 ? await measureWorkers(running, options, say) : undefined;
  say('latencies');
  await running.candidates.express.restart?.();
  const latencies = await measureLatencies(running, fullLoadOf(cases), {
    rounds: options.isQuick ? 1 : options.rounds,
    seconds: options.seconds,
  });
  say('garbage, memory, start-up');
  const garbage = await measureGarbage(running, 2 * options.seconds);
  const memory =
    options.memoryRequests > 0 ? await measureMemory(running, options.memoryRequests) : undefined;
  const startUp = options.starts > 0 ? await measureStartUp(running, options.starts) : undefined;
  return {
    measuredAt: new Date().toISOString(),
    machine: await describeMachine(running.programs),
    options,
    tookSeconds: Math.round((performance.now() - startedAt) / 1000),
    cases,
    workers,
    latencies,
    garbage,
    memory,
    startUp,
  };
}
