import type { InfoRecord } from 'csv-parse';
import { parse } from 'csv-parse/sync';
import { periodFault } from '../../../limiter/period.ts';
import { MIN_SECRET_LENGTH } from '../../../secrets/secret-format.ts';
import { CommandFault } from '../../command-fault.ts';
import type { ForeignKey, ForeignKeys, LeftOut } from './foreign-keys.ts';
import { isCount, MAX_COUNT } from './plan-for.ts';

/** The columns that are read, with the names under which they are found: letters and digits alone count. */
const COLUMNS = {
  name: ['name', 'username', 'owner', 'consumer', 'label', 'alias'],
  secret: ['secret', 'key', 'apikey', 'token', 'value'],
  sha256: ['secrethash', 'keyhash', 'hash', 'sha256', 'digest'],
  limit: ['limit', 'rate', 'ratelimit', 'quota'],
  period: ['period', 'per', 'window', 'interval'],
  externalId: ['externalid', 'customerid', 'customid', 'ownerid', 'userid'],
  tags: ['tags'],
  enabled: ['enabled', 'active'],
  expiresAt: ['expiresat', 'expires', 'expiry'],
} as const;
type Column = keyof typeof COLUMNS;

/** The words of `enabled`, among them those of Postgres. An empty cell is the default: enabled. */
const ENABLED: ReadonlyMap<string, boolean> = new Map([
  ...['', 'true', 't', 'yes', 'y', 'on', '1', 'active', 'enabled'].map((word) => [word, true] as const),
  ...['false', 'f', 'no', 'n', 'off', '0', 'inactive', 'disabled'].map((word) => [word, false] as const),
]);

/** The keys of CSV whose first row names the columns. Columns that it does not know are left out, and named. */
export function readTable(text: string): ForeignKeys {
  const [{ cells: header } = { cells: [] }, ...rows] = recordsOf(text);
  const places = placesOf(header);
  if (places.name === undefined || (places.secret ?? places.sha256) === undefined)
    throw new CommandFault(
      'usage',
      `The first row must name the columns, and among them one of ${COLUMNS.name.join(', ')}, and one of ${[...COLUMNS.secret, ...COLUMNS.sha256].join(', ')}.`,
    );
  const known = Object.values(places);
  const leftOut: LeftOut[] = header
    .filter((_, index) => !known.includes(index))
    .map((name) => ({ what: 'column', name: name.slice(0, 32), reason: 'has no counterpart' }));
  const keys = rows.flatMap(({ cells, number }) => {
    const row = `row ${number}`;
    const cell = (column: Column): string => cells[places[column] ?? -1]?.trim() ?? '';
    // The row's cells may be in wrong columns, and its name a secret.
    if (cells.length !== header.length) {
      const reason = `has ${cells.length} cells where the first row has ${header.length}`;
      leftOut.push({ what: 'key', name: row, reason });
      return [];
    }
    const key = keyOf(cell);
    if (typeof key !== 'string') return key;
    leftOut.push({ what: 'key', name: cell('name'), reason: `${row} ${key}` });
    return [];
  });
  return { keys, leftOut };
}

interface ParsedRecord {
  readonly record: readonly string[];
  readonly info: InfoRecord;
}

interface TableRow {
  readonly cells: readonly string[];
  /** From 1, blank lines included. */
  readonly number: number;
}

function recordsOf(text: string): readonly TableRow[] {
  try {
    const options = { bom: true, relax_column_count: true, skip_empty_lines: true, info: true };
    // With `info` the parser returns these, which its types do not say.
    const records = parse(text, options) as unknown as readonly ParsedRecord[];
    return records.map(({ record, info }) => ({ cells: record, number: info.records + info.empty_lines }));
  } catch (error) {
    const message = 'The file is not valid CSV: a quote is in a wrong place, or is not closed.';
    throw new CommandFault('usage', message, { cause: error });
  }
}

function placesOf(header: readonly string[]): Partial<Record<Column, number>> {
  const names = header.map((name) => name.toLowerCase().replaceAll(/[^a-z0-9]/g, ''));
  const found = (Object.keys(COLUMNS) as Column[]).flatMap((column) => {
    const place = COLUMNS[column].map((name) => names.indexOf(name)).find((index) => index >= 0);
    return place === undefined ? [] : [[column, place] as const];
  });
  return Object.fromEntries(found);
}

/** A text says what is wrong with the row. */
function keyOf(cell: (column: Column) => string): ForeignKey | string {
  const [secret, sha256, limit, expiresAt, externalId] = (
    ['secret', 'sha256', 'limit', 'expiresAt', 'externalId'] as const
  ).map(cell);
  if (!secret && !sha256) return 'has no secret';
  const enabled = ENABLED.get(cell('enabled').toLowerCase());
  if (enabled === undefined)
    return `has another word under enabled than ${[...ENABLED.keys()].filter(Boolean).join(', ')}`;
  if (limit && !(/^\d+$/.test(limit) && isCount(Number(limit)))) return limitFault(limit);
  const period = cell('period') || 'minute';
  const fault = limit ? periodFault(period) : undefined;
  if (fault !== undefined) return `has a period that can be none here: ${fault}`;
  return {
    name: cell('name'),
    secret: secret ? { text: secret } : { sha256: sha256 ?? '' },
    limits: limit ? [{ limit: Number(limit), period }] : [],
    tags: cell('tags')
      .split(/[\s,;]+/)
      .filter((tag) => tag !== ''),
    enabled,
    // A date is the end of its last day before: its first instant.
    ...(expiresAt && {
      expiresAt: /^\d{4}-\d\d-\d\d$/.test(expiresAt) ? `${expiresAt}T00:00:00Z` : expiresAt,
    }),
    ...(externalId && { externalId }),
  };
}

/** Shows no text that is long enough to be a secret in a wrong column. */
function limitFault(limit: string): string {
  const shown = limit.length < MIN_SECRET_LENGTH ? `: ${JSON.stringify(limit)}` : '';
  return `has a limit that is not a whole number from 1 to ${MAX_COUNT}${shown}`;
}
