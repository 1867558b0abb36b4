import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');
/** Starts the gateway as a process, which runs every file. */
const STARTS_GATEWAY = 'tests/support/gateway.ts';

/** The test files whose paths contain one of these, as Jest chooses them. */
export function testFiles(parts: readonly string[]): readonly string[] {
  return globSync('tests/**/*.test.{ts,tsx}', { cwd: ROOT })
    .filter((file) => parts.some((part) => file.includes(part)))
    .toSorted();
}

/** Whether a test can run a source file: it imports it, directly or not, or starts the gateway. A script of Redis has no importer. */
export function reaches(test: string, file: string): boolean {
  const reached = reachedBy(test);
  return file.endsWith('.lua') || reached.has(file) || reached.has(STARTS_GATEWAY);
}

const importsOfFile = new Map<string, readonly string[]>();

function reachedBy(test: string): ReadonlySet<string> {
  const reached = new Set([test]);
  // A set can grow while it is read.
  for (const file of reached) for (const target of importsOf(file)) reached.add(target);
  return reached;
}

function importsOf(file: string): readonly string[] {
  const known = importsOfFile.get(file);
  if (known !== undefined) return known;
  const text = /\.tsx?$/.test(file) ? readFileSync(join(ROOT, file), 'utf8') : '';
  const targets = [...text.matchAll(/(?:from|import\(?)\s*'(\.[^']+\.tsx?)'/g)].map(([, specifier = '']) =>
    relative(ROOT, resolve(ROOT, dirname(file), specifier)),
  );
  importsOfFile.set(file, targets);
  return targets;
}
