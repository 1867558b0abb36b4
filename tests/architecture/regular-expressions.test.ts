import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { analyse } from 'scslre';
import ts from 'typescript';

const SOURCE = resolve(import.meta.dirname, '../../src');
/** What runs at a user's, with that user's texts. */
const AT_USERS = /^(?:cli|client|console|portal)\//;

/** Expressions whose time grows faster than their text, and why that text is short. */
const SHORT_TEXTS: Readonly<Record<string, string>> = {
  '/\\/+$/': 'BACKEND_URL',
  '/=+$/': 'ENCRYPTION_KEY',
  '/^\\s*--.*$/gm': 'a migration',
  '/[A-Za-z][A-Za-z0-9]*$/': 'a prefix of at most 16 characters',
  '/\\\\.|\\[[^\\]]*\\]|[a-z]/g': 'our own expressions',
  '/p.*[-+]/': 'a period, whose length is looked at before',
  '/^p\\d.*[ymw].*\\d/': 'a period, whose length is looked at before',
  '/^https?:\\/\\/([^/?#]*)(.*)$/i': 'a target has no line break, so the rest of it always fits',
};

function expressionsOf(file: string): readonly string[] {
  const text = readFileSync(join(SOURCE, file), 'utf8');
  const expressions: string[] = [];
  const look = (node: ts.Node): void => {
    if (ts.isRegularExpressionLiteral(node)) expressions.push(node.text);
    ts.forEachChild(node, look);
  };
  // A file without this has none, and need not be parsed.
  if (/[^*/]\/[^*/\s]/.test(text)) look(ts.createSourceFile(file, text, ts.ScriptTarget.Latest));
  return expressions;
}

/** Whether a text can be made on which a search takes more than linear time. */
function isSlow(expression: string): boolean {
  const end = expression.lastIndexOf('/');
  const literal = { source: expression.slice(1, end), flags: expression.slice(end + 1) };
  return analyse(literal).reports.length > 0;
}

/** The patterns that a JSON document has anywhere. */
function patternsIn(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) =>
    name === 'pattern' && typeof member === 'string' ? [`/${member}/u`] : patternsIn(member),
  );
}

describe('A regular expression of the gateway', () => {
  it('takes no more than linear time, or has a short text', () => {
    const files = globSync('**/*.ts', { cwd: SOURCE }).filter((file) => !AT_USERS.test(file));
    const expressions = new Set(files.flatMap(expressionsOf));
    expect(expressions.size).toBeGreaterThan(150);
    expect([...expressions].filter(isSlow).toSorted()).toEqual(Object.keys(SHORT_TEXTS).toSorted());
  });

  it('takes no more than linear time in the schemas of bodies and parameters', () => {
    const document = readFileSync(join(SOURCE, '../docs/openapi.json'), 'utf8');
    const patterns = new Set(patternsIn(JSON.parse(document)));
    expect(patterns.size).toBeGreaterThan(20);
    expect([...patterns].filter(isSlow)).toEqual([]);
  });
});
