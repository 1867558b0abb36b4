import { globSync, readFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';

/** The stores that tests share. */
export interface NeededStores {
  readonly redis: boolean;
  readonly postgres: boolean;
  /** A directory in which an embedded Postgres was made, to be copied. */
  readonly embedded: boolean;
}

const ROOT = resolve(import.meta.dirname, '../..');
/** Hands out the stores, so that its own text says nothing. */
const STORES = resolve(import.meta.dirname, 'stores.ts');

const EMBEDDED = /\bcreateEmbeddedRecords\b|\bRECORD_STORES\b|\bcopyRecordsInto\b/;

/**
 * Which stores the test files whose paths match a pattern use, they themselves or files that they import. All files match where there is no
 * pattern.
 */
export function neededStores(patterns: readonly string[]): NeededStores {
  const texts = textsOfTests(patterns);
  return {
    redis: texts.some((text) => /\btestRedisUrl\b|\bTEST_REDIS_URL\b/.test(text)),
    postgres: texts.some((text) => /\bcreate(Test|Migrated)Database\b|\bTEST_DATABASE_URL\b/.test(text)),
    embedded: chosenFiles(patterns).some((file) => EMBEDDED.test(readFileSync(file, 'utf8'))),
  };
}

/** The texts of the test files whose paths match a pattern, and of the files of the tests that they import. */
export function textsOfTests(patterns: readonly string[]): readonly string[] {
  return [...withImports(chosenFiles(patterns)).values()];
}

function chosenFiles(patterns: readonly string[]): readonly string[] {
  const expressions = patterns.map((pattern) => new RegExp(pattern, 'i'));
  return globSync('tests/**/*.test.{ts,tsx}', { cwd: ROOT })
    .map((file) => resolve(ROOT, file))
    .filter((file) => expressions.length === 0 || expressions.some((each) => each.test(file)));
}

/** The text of each file and of each file of the tests that it imports. */
function withImports(files: readonly string[]): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  const waiting = [...files];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (texts.has(file) || file === STORES) continue;
    const text = readFileSync(file, 'utf8');
    texts.set(file, text);
    for (const [, specifier = ''] of text.matchAll(/(?:from|import\(?)\s*'(\.[^']+)'/g)) {
      const target = resolve(dirname(file), specifier);
      if (relative(ROOT, target).startsWith('tests/')) waiting.push(target);
    }
  }
  return texts;
}
