import { readFuzzBounds } from './fuzz-bounds.ts';
import { generateSequence } from './generate-sequence.ts';
import { playSequence } from './play-sequence.ts';
import type { Sequence } from './sequence.ts';
import { shrinkSequence } from './shrink-sequence.ts';

/** How long a sequence that fails may be tried without one or the other of its steps. Milliseconds. */
const SHRINK_MS = 40_000;

const { seconds, firstSeed, most } = readFuzzBounds(
  'fuzz',
  'Plays random sequences of requests, the n-th made from the seed + n. Ends with 0 when all promises held; otherwise it tells the seed of the sequence that failed, and shortens it.',
);

const usual = await playSequence({ ...generateSequence(0), isPolite: true, steps: [] });
const usualListeners = new Set(usual.listeners);
const endings = new Map<string, number>();
report(`from seed ${firstSeed}`);
process.exit((await run()) ? 0 : 1);

async function run(): Promise<boolean> {
  const deadline = performance.now() + seconds * 1000;
  let played = 0;
  for (; played < most && performance.now() < deadline; played += 1) {
    const sequence = generateSequence(firstSeed + played);
    const findings = await findingsOf(sequence);
    if (findings.length > 0) {
      await tell(sequence, findings);
      return false;
    }
  }
  report(`${played} sequences: all promises held`);
  for (const [ending, count] of [...endings].toSorted(([, a], [, b]) => b - a))
    report(`${count} × ${ending}`);
  return true;
}

async function findingsOf(sequence: Sequence): Promise<readonly string[]> {
  const played = await playSequence(sequence);
  for (const ending of played.endings) endings.set(ending, (endings.get(ending) ?? 0) + 1);
  const unusual = played.listeners.filter((listeners) => !usualListeners.has(listeners));
  return [
    ...played.findings,
    ...unusual.map((listeners) => `listeners are left on a kept connection: ${listeners}`),
  ];
}

async function tell(sequence: Sequence, findings: readonly string[]): Promise<void> {
  report(`FAILED, seed ${sequence.seed}; once more: npm run fuzz -- 60 ${sequence.seed} 1`);
  for (const finding of findings) report(`NOT HELD: ${finding}`);
  const kinds = findings.map(kindOf);
  const fails = async (shorter: Sequence) =>
    (await findingsOf(shorter)).some((finding) => kinds.includes(kindOf(finding)));
  const { steps, backendConnections } = await shrinkSequence(sequence, fails, SHRINK_MS);
  report(
    `of ${sequence.steps.length} steps these ${steps.length} fail, with ${backendConnections} backend connections:`,
  );
  for (const step of steps) report(JSON.stringify(step));
}

/** A finding without its numbers: what remains the same while a sequence is shortened. */
function kindOf(finding: string): string {
  return finding.replace(/\d+/g, '').slice(0, 60);
}

function report(line: string): void {
  process.stdout.write(`${line}\n`);
}
