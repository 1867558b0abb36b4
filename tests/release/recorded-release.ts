import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import semver from 'semver';
import type { InterfaceRecord } from './interface-record.ts';

const PARTS = [
  'openapi',
  'settings',
  'metrics',
  'commands',
  'chart',
  'events',
  'errors',
  'exitCodes',
  'client',
] as const;

/** The newest release below a folder of records; undefined where none is recorded yet. */
export function newestRelease(folder = 'docs/releases'): string | undefined {
  const versions = globSync(`${folder}/*`).map((path) => basename(path));
  return versions.filter((version) => semver.valid(version)).toSorted(semver.rcompare)[0];
}

/** The files of a record: `settings.json` and so on. */
export function recordFiles(record: InterfaceRecord): readonly (readonly [name: string, content: string])[] {
  return PARTS.map((part) => [`${part}.json`, `${JSON.stringify(record[part], null, 2)}\n`]);
}

export function readRecord(folder: string): InterfaceRecord {
  const parts = PARTS.map((part) => [part, JSON.parse(readFileSync(`${folder}/${part}.json`, 'utf8'))]);
  return Object.fromEntries(parts);
}
