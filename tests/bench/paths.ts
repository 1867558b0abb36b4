import { PathMatcher } from '../../src/paths/path-matcher.ts';
import { scriptCommand } from '../support/script-command.ts';

scriptCommand(
  'bench:paths',
  'What a match costs with 100 patterns like those of a real API, and with patterns and paths made to be slow.',
).parse();

const MATCHES = 1_000_000;
const ROUNDS = 7;

const RESOURCES = Array.from({ length: 20 }, (_, index) => `resource-${index}`);
const API = RESOURCES.flatMap((name) => [
  `/v1/${name}`,
  `/v1/${name}/{id}`,
  `/v1/${name}/{id}/items`,
  `/v1/${name}/{id}/items/{itemId}`,
  `/v1/*/{id}/${name}/**`,
]);
const WILDCARDS = Array.from({ length: 100 }, (_, depth) => `${'/*'.repeat(depth + 1)}/end`);

function matcherOf(paths: readonly string[]): PathMatcher<string> {
  return new PathMatcher(
    paths.map((path) => ({ pattern: { path }, value: path })),
    'insensitive',
  );
}

/** The fastest of several rounds, in nanoseconds a match: what else the machine does only ever adds. */
function nanosecondsOf(matcher: PathMatcher<string>, paths: readonly string[], matches: number): number {
  let best = Number.POSITIVE_INFINITY;
  let found = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const startedAtMs = performance.now();
    for (let number = 0; number < matches; number += 1) {
      if (matcher.match('GET', paths[number % paths.length] ?? '') !== undefined) found += 1;
    }
    best = Math.min(best, (performance.now() - startedAtMs) / matches);
  }
  if (found < 0) throw new Error('nothing was measured');
  return best * 1e6;
}

function report(
  name: string,
  patterns: readonly string[],
  paths: readonly string[],
  matches = MATCHES,
): void {
  const ns = nanosecondsOf(matcherOf(patterns), paths, matches);
  process.stdout.write(`${name.padEnd(66)} ${Math.round(ns).toLocaleString('en').padStart(9)} ns\n`);
}

/** Made from bytes each time, as paths of requests are: no text that was hashed before. */
function fresh(path: string): string {
  return Buffer.from(path).toString('latin1');
}

const ids = Array.from({ length: 1000 }, (_, index) => 100_000 + index);
const listed = ids.map((id) => fresh(`/v1/resource-${id % 20}/${id}/items/${id * 7}`));
const unlisted = ids.map((id) => fresh(`/v2/unknown-${id % 20}/${id}/items/${id * 7}`));
const last = ids.map((id) => fresh(`/v1/any-${id}/${id}/resource-19/a/b/c`));

report('100 patterns, a path that one of them names', API, listed);
report('100 patterns, the last one matches', API, last);
report('100 patterns, none matches', API, unlisted);
report('100 patterns, 16 KB path of 8192 segments', API, [fresh(`/v1${'/a'.repeat(8190)}`)]);
report('100 patterns, 16 KB path of one segment', API, [fresh(`/v1/${'a'.repeat(16_380)}`)]);
report('100 nested wildcards, 16 KB path of 8192 segments', WILDCARDS, [fresh('/a'.repeat(8192))], 100_000);
