import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type GatewayProcess, startGateway } from './gateway.ts';
import { embeddedPostgres } from './stores.ts';

/** A `DATA_DIR` as a first start leaves it. */
export interface DataDirectory {
  readonly directory: string;
  /** Makes a new directory the same: cheaper than a first start, which makes a whole database. */
  copyTo(directory: string): Promise<void>;
  /** What that gateway wrote from its start to its stop. */
  readonly output: string;
  remove(): Promise<void>;
}

/** Starts a gateway on an empty directory, lets it be used, and stops it. The caller must remove it. */
export async function makeDataDirectory(
  use: (gateway: GatewayProcess, directory: string) => Promise<void>,
): Promise<DataDirectory> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-first-start-'));
  const gateway = await startGateway({ BACKEND_URL: 'http://127.0.0.1:1', DATA_DIR: directory });
  await use(gateway, directory).finally(() => gateway.stop());
  return {
    directory,
    output: gateway.output(),
    copyTo: (target) => cp(directory, target, { recursive: true }),
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}

/**
 * Gives a `DATA_DIR` the records that a first start would make, which takes seconds of CPU time. The gateway has to be given its secrets: it
 * makes none beside records.
 */
export async function copyRecordsInto(directory: string): Promise<void> {
  await cp(embeddedPostgres(), join(directory, 'postgres'), { recursive: true });
}
