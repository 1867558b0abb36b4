import { rotateAdminTokens } from '../admins/rotate-admin-tokens.ts';
import { explainUnavailability } from '../app/diagnosis/records-fault.ts';
import { openRecordStore } from '../app/stores/open-stores.ts';
import { rotateSealedWebhooks } from '../events/rotate-sealed-webhooks.ts';
import { sealedFor } from '../idempotency/idempotent-requests.ts';
import { rotateSealedHandovers } from '../keys/handovers/rotate-sealed-handovers.ts';
import { rotateEncryptionKey } from '../keys/secrets/rotate-sealed-keys.ts';
import { systemClock } from '../platform/clock.ts';
import { createLogger } from '../platform/logger.ts';
import { StartFault } from '../platform/process/start-fault.ts';
import { systemRandom } from '../platform/random.ts';
import { rotateSealedRows } from '../secrets/rotate-seals.ts';
import { SecretVault } from '../secrets/secret-vault.ts';
import { InvalidSettings, readRotationSettings } from '../settings/settings.ts';
import { rotateSealedSessions } from '../sign-in/sealed-session.ts';
import type { Session } from '../sign-in/signed-in-session.ts';
import { EXIT_CODES } from './exit-codes.ts';
import { requireRecords } from './require-records.ts';

/** Ids of one kind in a line of the log. */
const MOST_NAMED = 1000;

/**
 * Replaces the seal of every stored secret by one with the first key of `ENCRYPTION_KEY`, while replicas run, so that the other keys can
 * be removed from the list. Exit code 0 if no secret needs the other keys any more, 2 if some still do, 78 for bad settings, else 1, also if
 * there are secrets that none of the keys opens.
 * `docs/runbook.md` has the whole procedure.
 */
async function rotate(): Promise<number> {
  const settings = readRotationSettings(process.env);
  requireRecords(settings);
  const log = createLogger(settings.logLevel);
  const platform = { clock: systemClock, random: systemRandom, log };
  const vault = new SecretVault(settings.encryptionKeys, systemRandom);
  const records = await openRecordStore(settings, platform, { chainSecrets: vault });
  try {
    const pending = await records.pendingMigrations();
    if (pending.length > 0)
      throw new StartFault(
        `${pending.length} migrations are pending: ${pending.join(', ')}. Run tollgate migrate first.`,
      );
    const { unreadable, ...report } = await sealAll(records, vault);
    log.info(report, 'rotated');
    const { unkept, adminTokens } = report;
    if (unkept > 0)
      log.warn(
        { keys: unkept },
        'keys made with SECRET_REVEAL=once need the encryption key that they were made under for as long as they live',
      );
    if (adminTokens.unkept > 0)
      log.warn(
        { adminTokens: adminTokens.unkept },
        'admin tokens made before their digests were kept need the encryption key that they were made under: rotate them',
      );
    if (unreadable.size > 0) {
      log.error(
        namesOf(unreadable),
        'no key of ENCRYPTION_KEY opens these: keep all of its keys, add the one that these were made under and run the command again; if that one is lost, delete these first',
      );
      return EXIT_CODES.fault;
    }
    return unkept + adminTokens.unkept === 0 ? 0 : 2;
  } finally {
    await records.close();
  }
}

/** Seals everything. Resolves with how much of each kind needed it, and with the ids of what no encryption key opens, by kind. */
async function sealAll(records: Awaited<ReturnType<typeof openRecordStore>>, vault: SecretVault) {
  const unreadable = new Map<string, Set<string>>();
  const note = (kind: string) => (id: string) => {
    unreadable.set(kind, (unreadable.get(kind) ?? new Set()).add(id));
  };
  const noteSession = ({ id, expiresAtMs }: Session): void => {
    // The next sign-in deletes those that have expired.
    if (expiresAtMs > systemClock.nowMs()) note('sessions')(id);
  };
  return {
    ...(await rotateEncryptionKey(records.sealedKeys, vault, note('keys'))),
    adminTokens: await rotateAdminTokens(records.sealedTokens, vault, note('adminTokens')),
    responses: await rotateSealedRows(records.responses, sealedFor, {
      ...{ vault, noteUnreadable: note('responses') },
    }),
    webhooks: await rotateSealedWebhooks(records.webhooks, vault, note('webhooks')),
    handovers: await rotateSealedHandovers(records.handovers, vault, note('handovers')),
    sessions: await rotateSealedSessions(records.sessions, vault, noteSession),
    // Last: what replicas wrote meanwhile under another key is then among the entries that it may verify.
    auditKeys: await records.audit.retireKeys(),
    unreadable,
  };
}

/** For one line of the log: how many records there are, and the first ids of each kind. */
function namesOf(unreadable: ReadonlyMap<string, ReadonlySet<string>>): object {
  let count = 0;
  for (const ids of unreadable.values()) count += ids.size;
  const named = [...unreadable].map(([kind, ids]) => [kind, [...ids].slice(0, MOST_NAMED)]);
  return { unreadable: count, ...Object.fromEntries(named) };
}

function sentenceOf(error: unknown): string {
  const unavailability = explainUnavailability(error);
  if (unavailability !== undefined)
    return `${unavailability} Then run the command again: it goes on where it stopped.`;
  if (error instanceof InvalidSettings || error instanceof StartFault) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

process.exitCode = await rotate().catch((error: unknown) => {
  process.stderr.write(`${sentenceOf(error)}\n`);
  return error instanceof InvalidSettings ? EXIT_CODES.configuration : EXIT_CODES.fault;
});
