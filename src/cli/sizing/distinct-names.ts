/** Ranks that are added up one by one; those below are added up as an integral. */
const EXACT_RANKS = 100;
/** Even, for Simpson's rule. */
const PANELS = 200;

/**
 * How many names of keys a number of requests touches, on average: the requests take the keys by a Zipf law, as in the benchmark (the key of
 * rank r has a share of ln(1 + 1/r) / ln(keys + 1)), and the names of a key evenly. With `names` 1, how many keys they touch.
 */
export function distinctNames(requests: number, keys: number, names: number): number {
  const touched = (rank: number) => {
    const share = Math.log1p(1 / rank) / Math.log1p(keys);
    return -names * Math.expm1((-requests * share) / names);
  };
  let sum = 0;
  for (let rank = 1; rank <= Math.min(keys, EXACT_RANKS); rank += 1) sum += touched(rank);
  if (keys <= EXACT_RANKS) return sum;
  // In the logarithm of the rank, which the function is smooth in.
  const from = Math.log(EXACT_RANKS + 0.5);
  const step = (Math.log(keys + 0.5) - from) / PANELS;
  let integral = 0;
  for (let panel = 0; panel <= PANELS; panel += 1) {
    const rank = Math.exp(from + panel * step);
    const weight = panel === 0 || panel === PANELS ? 1 : panel % 2 === 0 ? 2 : 4;
    integral += (weight * step * rank * touched(rank)) / 3;
  }
  return sum + integral;
}
