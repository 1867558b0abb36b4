import { createRequire } from 'node:module';
import { canonicalFault, canonicalPattern } from '../paths/canonical-pattern.ts';
import { pathPatternFault } from '../paths/path-pattern.ts';
import { isObject } from '../platform/is-object.ts';

const require = createRequire(import.meta.url);

/** Path patterns separated by commas. Throws an `Error` with the position of a wrong one and the reason. */
export function listedPatterns(value: string): readonly string[] {
  const patterns = value.split(',').map((entry) => entry.trim());
  for (const [index, pattern] of patterns.entries()) {
    if (value !== '') requireWellFormed(pattern, `pattern ${index + 1}`);
  }
  return patterns.filter((pattern) => pattern !== '');
}

/**
 * Path patterns of a file: one a line, without empty lines and lines that begin with `#`, or the paths of an OpenAPI document in JSON or
 * YAML. Throws an `Error` that names a wrong pattern and the reason. Of a file that is not an OpenAPI document the error quotes nothing:
 * it may be a file of secrets, named by mistake.
 */
export function patternsOfFile(content: string): readonly string[] {
  if (content.startsWith('{')) return pathsOf(parsed(content, JSON.parse, 'JSON'));
  if (OPENAPI_IN_YAML.test(content)) {
    // The library takes 25 ms to load, and most gateways don't need it.
    const { parse }: typeof import('yaml') = require('yaml');
    return pathsOf(parsed(content, parse, 'YAML'));
  }
  return patternsOfLines(content);
}

const OPENAPI_IN_YAML = /^["']?(?:openapi|swagger|paths)["']?\s*:/m;

function patternsOfLines(content: string): readonly string[] {
  const patterns: string[] = [];
  for (const [index, line] of content.split('\n').entries()) {
    const pattern = line.trim();
    if (pattern === '' || pattern.startsWith('#')) continue;
    requireWellFormed(pattern, `line ${index + 1}`);
    patterns.push(pattern);
  }
  if (patterns.length === 0) throw new Error('the file has no pattern');
  return patterns;
}

function parsed(content: string, parse: (text: string) => unknown, form: string): unknown {
  try {
    return parse(content);
  } catch {
    throw new Error(`the file is not well-formed ${form}`);
  }
}

/** The paths of an OpenAPI document, in the order in which OpenAPI matches them: concrete segments before templated ones. */
function pathsOf(document: unknown): readonly string[] {
  const paths = isObject(document) ? document.paths : undefined;
  if (!isObject(paths)) throw new Error('the file is no OpenAPI document: it has no "paths"');
  const patterns = Object.keys(paths).filter((path) => !path.startsWith('x-'));
  for (const path of patterns) requireWellFormed(path, `the path "${path}"`);
  if (patterns.length === 0) throw new Error('the OpenAPI document has no path');
  return patterns.toSorted((a, b) => {
    const [keyA, keyB] = [templateKey(a), templateKey(b)];
    return keyA === keyB ? 0 : keyA < keyB ? -1 : 1;
  });
}

/** Sort key with concrete segments before templated ones, from the left. Paths with equal keys keep their order. */
function templateKey(path: string): string {
  return path.replaceAll(/[^/]+/g, (segment) => (segment.startsWith('{') ? '1' : '0'));
}

function requireWellFormed(pattern: string, which: string): void {
  const fault = pathPatternFault(pattern) ?? canonicalFault(canonicalPattern(pattern, 'sensitive'));
  if (fault !== undefined) throw new Error(`${which} ${fault}`);
}
