/** A prime above every number of keys, so that the busiest keys are not the ones that were made first. */
const STEP = 15_485_863;

/**
 * Numbers of keys, drawn by a Zipf law with exponent 1: the key of rank r is drawn with a share of ln(1 + 1/r) / ln(keys + 1). `random` gives
 * numbers from 0 to below 1.
 */
export function zipfKeys(keys: number, draws: number, random: () => number): readonly number[] {
  return Array.from({ length: draws }, () => {
    const rank = Math.min(keys, Math.floor((keys + 1) ** random()));
    return (rank * STEP) % keys;
  });
}
