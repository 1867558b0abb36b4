import type { AdminTokenRepository } from '../../admins/admin-token-repository.ts';
import type { DesiredStateStore } from '../../desired-state/desired-state-store.ts';
import type { WebhookRepository } from '../../events/webhook-repository.ts';
import type { JobStore } from '../../jobs/job-store.ts';
import type { HandoverRepository } from '../../keys/handovers/handover-repository.ts';
import type { KeyListStore } from '../../keys/key-list.ts';
import type { KeyRepository } from '../../keys/key-repository.ts';
import type { SecretRepository } from '../../keys/secrets/secret-repository.ts';
import type { PlanRepository } from '../../plans/plan-repository.ts';
import type { SessionStore } from '../../sign-in/session-store.ts';
import { PostgresAdminTokenRepository } from './admins/postgres-admin-token-repository.ts';
import type { AuditedChanges } from './audit/audited-changes.ts';
import { PostgresDesiredState } from './desired-state/postgres-desired-state.ts';
import { PostgresWebhookRepository } from './events/postgres-webhook-repository.ts';
import { PostgresHandoverRepository } from './handovers/postgres-handover-repository.ts';
import { PostgresJobStore } from './jobs/postgres-job-store.ts';
import { PostgresKeyList } from './keys/postgres-key-list.ts';
import { type KeyReading, PostgresKeyRepository } from './keys/postgres-key-repository.ts';
import { PostgresSecretRepository } from './keys/postgres-secret-repository.ts';
import { PostgresPlanRepository } from './plans/postgres-plan-repository.ts';
import type { RecordsDatabase } from './records-database.ts';
import { PostgresSessionStore } from './sign-in/postgres-session-store.ts';

/** The repositories whose writes can be made together, in a unit of work. */
export interface Repositories {
  readonly keys: KeyRepository;
  readonly keyList: KeyListStore;
  readonly plans: PlanRepository;
  readonly desiredState: DesiredStateStore;
  readonly secrets: SecretRepository;
  readonly adminTokens: AdminTokenRepository;
  /** Of people who have signed in. */
  readonly sessions: SessionStore;
  readonly webhooks: WebhookRepository;
  readonly handovers: HandoverRepository;
  readonly jobs: JobStore;
}

/** The repositories on a database, or in a transaction. `changes` makes their changes there. */
export function repositoriesOn(db: RecordsDatabase, changes: AuditedChanges, options: KeyReading) {
  const { defaultPlanId } = options;
  return {
    keys: new PostgresKeyRepository(db, changes, options),
    keyList: new PostgresKeyList(db),
    plans: new PostgresPlanRepository(db, changes, defaultPlanId),
    desiredState: new PostgresDesiredState(db, changes, defaultPlanId),
    secrets: new PostgresSecretRepository(db, changes, defaultPlanId),
    adminTokens: new PostgresAdminTokenRepository(db, changes),
    sessions: new PostgresSessionStore(db, changes),
    webhooks: new PostgresWebhookRepository(db, changes),
    handovers: new PostgresHandoverRepository(db, changes),
    jobs: new PostgresJobStore(db, changes),
  };
}
