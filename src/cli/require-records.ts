import { existsSync } from 'node:fs';
import { recordsDirectory } from '../app/stores/open-stores.ts';
import { InvalidSettings, type RecordSettings } from '../settings/settings.ts';

/**
 * Throws `InvalidSettings` without a database and without an embedded store: opening the store would create an empty one, and the command
 * would report success although it has not reached the records that were meant.
 */
export function requireRecords(settings: RecordSettings): void {
  if (settings.databaseUrl !== null || existsSync(recordsDirectory(settings))) return;
  throw new InvalidSettings([
    `DATABASE_URL: is not set, and DATA_DIR (${settings.dataDir}) holds no embedded store`,
  ]);
}
