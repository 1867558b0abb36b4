import { openRecordStore } from '../app/stores/open-stores.ts';
import { systemClock } from '../platform/clock.ts';
import { createLogger } from '../platform/logger.ts';
import { systemRandom } from '../platform/random.ts';
import { InvalidSettings, readRecordSettings } from '../settings/settings.ts';
import { EXIT_CODES } from './exit-codes.ts';
import { requireRecords } from './require-records.ts';

/** Applies the migrations of `sql/`. Exit code 0 if the store then has the schema of this version, 78 for bad settings, else 1. */
async function migrate(): Promise<number> {
  const settings = readRecordSettings(process.env);
  requireRecords(settings);
  const log = createLogger(settings.logLevel);
  const records = await openRecordStore(settings, { clock: systemClock, random: systemRandom, log });
  try {
    const applied = await records.migrate();
    log.info({ migrations: applied }, applied.length > 0 ? 'migrations applied' : 'nothing to migrate');
    return 0;
  } catch (error) {
    log.fatal({ err: error }, 'the migration failed; nothing of it was kept');
    return EXIT_CODES.fault;
  } finally {
    await records.close();
  }
}

process.exitCode = await migrate().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  return error instanceof InvalidSettings ? EXIT_CODES.configuration : EXIT_CODES.fault;
});
