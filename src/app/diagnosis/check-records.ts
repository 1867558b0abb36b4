import { checkEncryptionKey } from '../../keys/secrets/check-encryption-key.ts';
import type { Platform } from '../../platform/platform.ts';
import { SecretVault } from '../../secrets/secret-vault.ts';
import type { Settings } from '../../settings/settings.ts';
import { failureReason, isDiskFull } from '../../storage/failure-reason.ts';
import type { Records } from '../../storage/postgres/open-records.ts';
import { openRecordStore } from '../stores/open-stores.ts';
import { clockFindings } from './clock-findings.ts';
import { type Finding, findingsOf } from './finding.ts';
import { recordsFault } from './records-fault.ts';

const { ok, warning, fault } = findingsOf('postgres');
const SLOW_MS = 50;
const ROUND_TRIPS = 3;

/** Checks the records without changing them: it applies no migration. Never rejects. */
export async function checkRecords(settings: Settings, platform: Platform): Promise<readonly Finding[]> {
  if (settings.databaseUrl === null) {
    const where = `The records are in an embedded Postgres in DATA_DIR (${settings.dataDir}), for one process.`;
    // Only one process at a time can open it, and the gateway under check may be running.
    return [ok(`${where} It is not opened here.`)];
  }
  const vault = new SecretVault(settings.encryptionKeys, platform.random);
  const records = await openRecordStore(settings, platform, { chainSecrets: vault });
  try {
    return await lookAt(records, settings, { ...platform, vault });
  } catch (error) {
    return [recordsFault(error)];
  } finally {
    await records.close();
  }
}

async function lookAt(
  records: Records,
  settings: Settings,
  platform: Platform & { readonly vault: SecretVault },
): Promise<readonly Finding[]> {
  await records.ping();
  const { version, isStandby, isReadOnly, latencyMs, clockAheadMs } = await fastest(records, platform);
  const findings = [
    latencyMs > SLOW_MS
      ? warning(
          `Postgres ${version} takes ${rounded(latencyMs)} ms to respond.`,
          'Run it near the gateway: a key that is not in memory waits for it.',
        )
      : ok(`Postgres ${version} responds in ${rounded(latencyMs)} ms.`),
    ...clockFindings('postgres', clockAheadMs),
  ];
  if (isStandby)
    return [
      ...findings,
      fault('The server is a standby, which takes no writes.', 'Name the primary server in DATABASE_URL.'),
    ];
  if (isReadOnly)
    findings.push(
      fault(
        'The server takes no writes: default_transaction_read_only is on, so changes get 503 and usage waits in Redis.',
        'Set it to off where it is set: ALTER SYSTEM, ALTER DATABASE, ALTER ROLE or DATABASE_URL.',
      ),
    );
  findings.push(...(await diskFindings(records)));
  const { pending } = await records.describe();
  if (pending.length > 0) return [...findings, pendingFinding(pending, settings)];
  return [
    ...findings,
    ok('All migrations of this version are applied.'),
    await encryptionKeyFinding(records, platform.vault),
    ...(await defaultPlanFindings(records, settings)),
  ];
}

/** A full disk shows only when something is written. */
async function diskFindings(records: Records): Promise<readonly Finding[]> {
  try {
    await records.probeDisk();
    return [];
  } catch (error) {
    if (!isDiskFull(error)) throw error;
    return [
      fault(
        `The disk of the server is full: ${failureReason(error)}.`,
        'Make room on it; docs/runbook.md has a section on full disks.',
      ),
    ];
  }
}

async function fastest(records: Records, { clock }: Platform) {
  let best = {
    version: '',
    isStandby: false,
    isReadOnly: false,
    latencyMs: Number.POSITIVE_INFINITY,
    clockAheadMs: 0,
  };
  for (let trip = 0; trip < ROUND_TRIPS; trip += 1) {
    const startedAtMs = clock.monotonicMs();
    const { nowMs, ...server } = await records.readServer();
    const latencyMs = clock.monotonicMs() - startedAtMs;
    if (latencyMs < best.latencyMs)
      best = { ...server, latencyMs, clockAheadMs: nowMs + latencyMs / 2 - clock.nowMs() };
  }
  return best;
}

function pendingFinding(pending: readonly string[], { autoMigrate }: Settings): Finding {
  const finding = `${pending.length} migrations are pending: ${pending.join(', ')}.`;
  return autoMigrate
    ? warning(finding, 'The next start of the gateway applies them (AUTO_MIGRATE).')
    : fault(finding, 'Run tollgate migrate before the gateway of this version starts.');
}

async function encryptionKeyFinding(records: Records, vault: SecretVault): Promise<Finding> {
  switch (await checkEncryptionKey(records, vault)) {
    case 'all':
      return ok('ENCRYPTION_KEY opens the stored keys that were tried.');
    case 'some':
      return warning(
        'ENCRYPTION_KEY opens only some of the stored keys.',
        'Add the encryption key that the others were made under, behind the first one.',
      );
    case 'none':
      return fault(
        'The stored keys, or the newest entry of the audit log, were made under another ENCRYPTION_KEY.',
        'Set that one, or the DATABASE_URL that belongs to this one.',
      );
  }
}

async function defaultPlanFindings(
  { plans }: Records,
  { defaultPlanId }: Settings,
): Promise<readonly Finding[]> {
  if (defaultPlanId === null || (await plans.find(defaultPlanId)) !== undefined) return [];
  return [
    fault(
      `DEFAULT_PLAN_ID names the plan ${defaultPlanId}, which does not exist: keys without a plan of their own get 503.`,
      'Make the plan (tollgate plans create), or name another one.',
    ),
  ];
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}
