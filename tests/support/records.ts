import { cp, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ChainSecrets } from '../../src/audit/audit-chain.ts';
import { openEmbeddedRecords } from '../../src/storage/embedded/open-embedded-records.ts';
import { openRecords, type Records } from '../../src/storage/postgres/open-records.ts';
import { scratchFolder } from './scratch-folder.ts';
import { createMigratedDatabase, embeddedPostgres } from './stores.ts';
import { TEST_VAULT } from './test-vault.ts';

/** Where the migrations are. */
export const MIGRATIONS = fileURLToPath(new URL('../../sql', import.meta.url));

/** A migrated record store of a test's own. */
export interface TestRecords {
  readonly records: Records;
  /** Opens the same store again, as another replica would, perhaps with other encryption keys; who opens it closes it. */
  reopen(defaultPlanId: string | null, chainSecrets?: ChainSecrets): Promise<Records>;
  /** Closes the store and removes its data. */
  remove(): Promise<void>;
}

/** Opens the database of a URL, with what suits most tests where the options say nothing else. The caller closes it. */
export function openTestRecords(
  url: string,
  options: Partial<Parameters<typeof openRecords>[0]> = {},
): Records {
  return openRecords({
    url,
    maxConnections: 5,
    migrationsDirectory: MIGRATIONS,
    defaultPlanId: 'default',
    chainSecrets: TEST_VAULT,
    onIdleError: () => {},
    ...options,
  });
}

/** In a new database of the test run's Postgres. */
export async function createPostgresRecords(defaultPlanId: string | null = 'default'): Promise<TestRecords> {
  const { url, drop } = await createMigratedDatabase();
  const records = openTestRecords(url, { defaultPlanId });
  return {
    records,
    reopen: async (planId, chainSecrets = TEST_VAULT) =>
      openTestRecords(url, { defaultPlanId: planId, chainSecrets }),
    remove: async () => {
      await records.close();
      await drop();
    },
  };
}

function fail(error: unknown): never {
  throw error;
}

/** In an embedded Postgres in a new folder. Only one may have it open: `reopen` closes the first. */
export async function createEmbeddedRecords(defaultPlanId: string | null = 'default'): Promise<TestRecords> {
  const directory = await mkdtemp(join(await scratchFolder(), 'tollgate-records-'));
  await cp(embeddedPostgres(), directory, { recursive: true });
  const open = (planId: string | null, chainSecrets: ChainSecrets = TEST_VAULT) =>
    openEmbeddedRecords({
      ...{ directory, migrationsDirectory: MIGRATIONS, defaultPlanId: planId, chainSecrets },
      onUpkeepFailure: fail,
    });
  const records = await open(defaultPlanId);
  return {
    records,
    reopen: async (planId, secrets) => {
      await records.close();
      return open(planId, secrets);
    },
    remove: async () => {
      await records.close();
      await rm(directory, { recursive: true, force: true });
      await rm(`${directory}.lock.db`, { force: true });
    },
  };
}

/** Every kind of record store, by the name that its tests carry. */
export const RECORD_STORES: readonly (readonly [string, typeof createPostgresRecords])[] = [
  ['Postgres', createPostgresRecords],
  ['PGlite', createEmbeddedRecords],
];
