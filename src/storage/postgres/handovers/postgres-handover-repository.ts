import { type Selectable, sql } from 'kysely';
import { type AuditAction, changedFields } from '../../../audit/audit-entry.ts';
import type { ChangeContext } from '../../../audit/change-context.ts';
import { keyTarget } from '../../../keys/audited-key.ts';
import { type Handover, handoverState } from '../../../keys/handovers/handover.ts';
import type {
  FoundHandover,
  HandoverPage,
  HandoverRepository,
  NewHandover,
} from '../../../keys/handovers/handover-repository.ts';
import type { SealedHandover, SealedHandovers } from '../../../keys/handovers/rotate-sealed-handovers.ts';
import { isVisible } from '../../../permissions/visible-records.ts';
import { isoSeconds } from '../../../platform/timestamps.ts';
import type { AuditedChanges, NoteAction } from '../audit/audited-changes.ts';
import { countRows } from '../count-rows.ts';
import { deleteInParts } from '../delete-in-parts.ts';
import { earlierNowMs } from '../earlier-now.ts';
import { lockedKey } from '../keys/key-rows.ts';
import type { RecordsDatabase } from '../records-database.ts';
import type { HandoversTable } from './handovers-tables.ts';

/** Links that are removed at a time. */
const REMOVED_AT_ONCE = 1000;

/**
 * Links in Postgres. Locks are taken in this order: the link, its key, what the link keeps. The deletion of a key, which deletes what its
 * links keep, takes the last two in the same order.
 */
export class PostgresHandoverRepository implements HandoverRepository, SealedHandovers {
  readonly #db: RecordsDatabase;
  readonly #changes: AuditedChanges;

  constructor(db: RecordsDatabase, changes: AuditedChanges) {
    this.#db = db;
    this.#changes = changes;
  }

  insert(
    handover: NewHandover,
    change: ChangeContext,
  ): Promise<'made' | 'key_not_found' | 'secret_not_available'> {
    return this.#changes.make(change, async (trx, note) => {
      const key = await lockedKey(trx, handover.keyId, change);
      if (key === undefined) return 'key_not_found';
      const { sealed_secret, secret_version } = await trx
        .selectFrom('consumer_keys')
        .select(['sealed_secret', 'secret_version'])
        .where('id', '=', key.id)
        .executeTakeFirstOrThrow();
      const sealed = handover.seal(sealed_secret && Buffer.from(sealed_secret));
      if (sealed === null) return 'secret_not_available';
      await trx.insertInto('handovers').values(rowOf(handover, secret_version)).execute();
      await trx
        .insertInto('handover_secrets')
        .values({ handover_id: handover.id, key_id: key.id, sealed })
        .execute();
      const changes = changedFields(null, {
        handoverId: handover.id,
        handoverExpiresAt: isoSeconds(handover.expiresAtMs),
        ...(handover.note !== null && { note: handover.note }),
      });
      note({ action: 'key.offer-handover', target: keyTarget(key), changes });
      return 'made';
    });
  }

  async list(keyId: string, { limit, beforeId, nowMs }: HandoverPage): Promise<readonly FoundHandover[]> {
    let page = selectFound(this.#db).where('handovers.key_id', '=', keyId).limit(limit);
    if (beforeId !== undefined) page = page.where('handovers.id', '<', beforeId);
    const rows = await page.orderBy('handovers.id', 'desc').execute();
    return rows.map((row) => foundOf(row, nowMs));
  }

  count(keyId: string): Promise<number> {
    return countRows(this.#db.selectFrom('handovers').where('key_id', '=', keyId));
  }

  async findByDigest(tokenDigest: Buffer, nowMs: number): Promise<FoundHandover | undefined> {
    const row = await selectFound(this.#db).where('token_digest', '=', tokenDigest).executeTakeFirst();
    return row && foundOf(row, nowMs);
  }

  revoke(keyId: string, handoverId: string, change: ChangeContext): Promise<Handover | undefined> {
    return this.#changes.make(change, async (trx, note) => {
      const row = await lockHandovers(trx)
        .where('id', '=', handoverId)
        .where('key_id', '=', keyId)
        .executeTakeFirst();
      const key = row && (await selectTarget(trx, keyId));
      if (row === undefined || key === undefined || !isVisible(key.tags, change.onlyTags)) return undefined;
      if (row.used_at !== null || row.revoked_at !== null) return handoverOf(row);
      await deleteSecret(trx, handoverId);
      await mark(trx, handoverId, { revoked_at: new Date(change.atMs) });
      noteEnd(note, { action: 'key.revoke-handover', key, handoverId });
      return { ...handoverOf(row), revokedAtMs: change.atMs };
    });
  }

  use(
    tokenDigest: Buffer,
    open: (handoverId: string, sealed: Buffer) => string,
    change: ChangeContext,
  ): Promise<(FoundHandover & { readonly secret?: string }) | undefined> {
    return this.#changes.make(change, async (trx, note) => {
      const locked = await lockHandovers(trx).where('token_digest', '=', tokenDigest).executeTakeFirst();
      if (locked === undefined) return undefined;
      // The key can't be deleted, rotated or disabled until the secret is handed over.
      await trx.selectFrom('consumer_keys').select('id').where('id', '=', locked.key_id).forShare().execute();
      const row = await selectFound(trx).where('handovers.id', '=', locked.id).executeTakeFirstOrThrow();
      const found = foundOf(row, change.atMs);
      if (found.state !== 'open') return found;
      const sealed = await deleteSecret(trx, locked.id);
      const key = await selectTarget(trx, locked.key_id);
      if (sealed === undefined || key === undefined) throw new Error('An open link has lost what it keeps.');
      const secret = open(locked.id, sealed);
      await mark(trx, locked.id, { used_at: new Date(change.atMs) });
      noteEnd(note, { action: 'key.hand-over', key, handoverId: locked.id });
      return { ...found, secret };
    });
  }

  async prune(replicaNowMs: number, keptMs: number, goesOn?: () => boolean): Promise<void> {
    const nowMs = await earlierNowMs(this.#db, replicaNowMs);
    // Rows that a change has locked are left to the next time: this statement has no order of locks.
    await deleteInParts(
      this.#db,
      sql`handover_secrets WHERE handover_id IN (
        SELECT kept.handover_id FROM handover_secrets kept
          JOIN handovers ON handovers.id = kept.handover_id
          JOIN consumer_keys ON consumer_keys.id = kept.key_id
        WHERE handovers.expires_at <= ${new Date(nowMs)}
          OR (handovers.secret_version <> consumer_keys.secret_version AND NOT EXISTS (
            SELECT FROM previous_secrets
            WHERE previous_secrets.key_id = kept.key_id AND previous_secrets.version = handovers.secret_version
              AND previous_secrets.valid_until > ${new Date(nowMs)}))
        LIMIT ${REMOVED_AT_ONCE} FOR UPDATE OF kept SKIP LOCKED)`,
      goesOn,
    );
    await deleteInParts(
      this.#db,
      sql`handovers WHERE id IN (
        SELECT id FROM handovers WHERE expires_at < ${new Date(nowMs - keptMs)}
        LIMIT ${REMOVED_AT_ONCE} FOR UPDATE SKIP LOCKED)`,
      goesOn,
    );
  }

  async after(id: string | undefined, limit: number): Promise<readonly SealedHandover[]> {
    const rows = await this.#db
      .selectFrom('handover_secrets')
      .select(['handover_id', 'sealed'])
      .where('handover_id', '>', id ?? '')
      .orderBy('handover_id')
      .limit(limit)
      .execute();
    return rows.map((row) => ({ id: row.handover_id, sealed: Buffer.from(row.sealed) }));
  }

  async replace({ id, sealed: present }: SealedHandover, sealed: Buffer): Promise<void> {
    await this.#db
      .updateTable('handover_secrets')
      .set({ sealed })
      .where('handover_id', '=', id)
      .where('sealed', '=', present)
      .execute();
  }
}

type HandoverRow = Selectable<HandoversTable>;

function rowOf(handover: NewHandover, secretVersion: number): HandoverRow {
  const { id, keyId, tokenDigest, note, createdAtMs, expiresAtMs } = handover;
  return {
    ...{ id, key_id: keyId, secret_version: secretVersion, token_digest: tokenDigest, note },
    created_at: new Date(createdAtMs),
    expires_at: new Date(expiresAtMs),
    used_at: null,
    revoked_at: null,
  };
}

function selectFound(db: RecordsDatabase) {
  return db
    .selectFrom('handovers')
    .leftJoin('consumer_keys', 'consumer_keys.id', 'handovers.key_id')
    .selectAll('handovers')
    .select([
      'consumer_keys.name as key_name',
      'consumer_keys.enabled as key_enabled',
      'consumer_keys.expires_at as key_expires_at',
      'consumer_keys.secret_version as key_secret_version',
    ]);
}

interface FoundRow extends HandoverRow {
  readonly key_name: string | null;
  readonly key_enabled: boolean | null;
  readonly key_expires_at: Date | null;
  readonly key_secret_version: number | null;
}

function foundOf(row: FoundRow, nowMs: number): FoundHandover {
  const handover = handoverOf(row);
  const key =
    row.key_name === null
      ? undefined
      : {
          enabled: row.key_enabled === true,
          expiresAtMs: row.key_expires_at?.getTime() ?? null,
          hasSecret: row.key_secret_version === row.secret_version,
        };
  return { handover, state: handoverState(handover, key, nowMs), keyName: row.key_name };
}

function handoverOf(row: HandoverRow): Handover {
  return {
    id: row.id,
    keyId: row.key_id,
    note: row.note,
    createdAtMs: row.created_at.getTime(),
    expiresAtMs: row.expires_at.getTime(),
    usedAtMs: row.used_at?.getTime() ?? null,
    revokedAtMs: row.revoked_at?.getTime() ?? null,
  };
}

function lockHandovers(trx: RecordsDatabase) {
  return trx.selectFrom('handovers').selectAll().forUpdate();
}

/** What the audit log says of the key of a link; undefined if it was deleted. */
function selectTarget(trx: RecordsDatabase, keyId: string) {
  return trx
    .selectFrom('consumer_keys')
    .select(['id', 'name', 'tags'])
    .where('id', '=', keyId)
    .executeTakeFirst();
}

/** Deletes what a link keeps. Resolves with it; undefined if there was nothing any more. */
async function deleteSecret(trx: RecordsDatabase, handoverId: string): Promise<Buffer | undefined> {
  const row = await trx
    .deleteFrom('handover_secrets')
    .where('handover_id', '=', handoverId)
    .returning('sealed')
    .executeTakeFirst();
  return row && Buffer.from(row.sealed);
}

async function mark(
  trx: RecordsDatabase,
  handoverId: string,
  end: { readonly used_at: Date } | { readonly revoked_at: Date },
): Promise<void> {
  await trx.updateTable('handovers').set(end).where('id', '=', handoverId).execute();
}

interface EndedHandover {
  readonly action: AuditAction;
  readonly key: Parameters<typeof keyTarget>[0];
  readonly handoverId: string;
}

function noteEnd(note: NoteAction, { action, key, handoverId }: EndedHandover): void {
  note({ action, target: keyTarget(key), changes: { handoverId: { from: handoverId, to: null } } });
}
