import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What of `--cpu-prof` is read. */
interface CpuProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: CallFrame }[];
  readonly samples: readonly number[];
  /** Microseconds before each sample. */
  readonly timeDeltas: readonly number[];
}
interface CallFrame {
  readonly functionName: string;
  readonly url: string;
}

/** A part of the code and its share of the samples that were not idle, 0 to 1, the largest first. */
export type Shares = readonly (readonly [part: string, share: number])[];

/** A part of a profile, counted from its start. Microseconds. */
interface Span {
  readonly fromUs: number;
  readonly untilUs: number;
}

/** Reads a span of the one profile of a directory: shares by part of the code, and by function. */
export async function functionShares(
  directory: string,
  span: Span,
): Promise<{ readonly parts: Shares; readonly functions: Shares }> {
  const file = (await readdir(directory)).find((name) => name.endsWith('.cpuprofile'));
  if (file === undefined) throw new Error(`no profile in ${directory}`);
  const profile = JSON.parse(await readFile(join(directory, file), 'utf8')) as CpuProfile;
  const frames = new Map(profile.nodes.map(({ id, callFrame }) => [id, callFrame]));
  const parts = new Map<string, number>();
  const functions = new Map<string, number>();
  for (const id of samplesOf(profile, span)) {
    const frame = frames.get(id);
    if (frame === undefined || frame.functionName === '(idle)') continue;
    const part = partOf(frame);
    count(parts, part);
    count(functions, `${frame.functionName || '(anonymous)'} (${part})`);
  }
  return { parts: sharesOf(parts), functions: sharesOf(functions) };
}

function samplesOf({ samples, timeDeltas }: CpuProfile, { fromUs, untilUs }: Span): readonly number[] {
  let atUs = 0;
  return samples.filter((_, index) => {
    atUs += timeDeltas[index] ?? 0;
    return atUs >= fromUs && atUs < untilUs;
  });
}

/** `src/proxy`, the name of a package, `node:net`, or the frame that V8 made up, such as the garbage collector's. */
function partOf({ functionName, url }: CallFrame): string {
  const [, name] = /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url) ?? [];
  if (name !== undefined) return name;
  const [, folder] = /\/(src\/[^/]+)\//.exec(url) ?? [];
  if (folder !== undefined) return folder;
  if (url !== '') return url;
  return functionName.startsWith('(') ? functionName : `native: ${functionName}`;
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function sharesOf(counts: ReadonlyMap<string, number>): Shares {
  const all = counts.values().reduce((sum, one) => sum + one, 0);
  return [...counts]
    .map(([name, one]) => [name, one / all] as const)
    .toSorted(([, one], [, other]) => other - one);
}
