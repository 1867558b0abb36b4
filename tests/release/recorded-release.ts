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

/** The releases below a folder of records, the newest first. */
export function recordedReleases(folder = 'docs/releases'): readonly string[] {
  const versions = globSync(`${folder}/*`).map((path) => basename(path));
  return versions.filter((version) => semver.valid(version)).toSorted(semver.rcompare);
}

/** The files of a record: `settings.json` and so on. */
export function recordFiles(record: InterfaceRecord): readonly (readonly [name: string, content: string])[] {
  return PARTS.map((part) => [`${part}.json`, `${JSON.stringify(record[part], null, 2)}\n`]);
}

export function readRecord(folder: string): InterfaceRecord {
  const parts = PARTS.map((part) => [part, JSON.parse(readFileSync(`${folder}/${part}.json`, 'utf8'))]);
  return Object.fromEntries(parts);
}
