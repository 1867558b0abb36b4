import type { Sequence, Step } from './sequence.ts';

/**
 * Leaves out steps, in halves first and one by one in the end, as long as the sequence still fails and for about so many milliseconds.
 * What is left may not be the shortest, but it failed when it was played.
 */
export async function shrinkSequence(
  sequence: Sequence,
  fails: (shorter: Sequence) => Promise<boolean>,
  withinMs: number,
): Promise<Sequence> {
  let steps: readonly Step[] = sequence.steps;
  const deadline = performance.now() + withinMs;
  const isLate = (): boolean => performance.now() > deadline;
  for (
    let size = Math.ceil(steps.length / 2);
    size >= 1 && !isLate();
    size = size === 1 ? 0 : Math.ceil(size / 2)
  ) {
    for (let at = 0; at < steps.length && !isLate(); ) {
      const fewer = steps.toSpliced(at, size);
      if (await fails({ ...sequence, steps: fewer })) steps = fewer;
      else at += size;
    }
  }
  return { ...sequence, steps };
}
