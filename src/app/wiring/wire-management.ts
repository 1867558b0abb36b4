import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { AdminTokenService } from '../../admins/admin-token-service.ts';
import { TokenAuthenticator } from '../../admins/token-authenticator.ts';
import type { DesiredStateService } from '../../desired-state/desired-state-service.ts';
import type { EventStreams } from '../../events/stream/event-streams.ts';
import type { WebhookService } from '../../events/webhook-service.ts';
import { BodyBudget } from '../../http/body-budget.ts';
import type { FailedCredentials } from '../../http/credentials/failed-credentials.ts';
import type { RequestIds } from '../../http/request-id.ts';
import { withRequestId } from '../../http/with-request-id.ts';
import type { BulkJobs } from '../../jobs/bulk-jobs.ts';
import { KeyImports } from '../../keys/key-imports.ts';
import { KeyRotations } from '../../keys/key-rotation.ts';
import { KeyService } from '../../keys/key-service.ts';
import type { KeyVerifier } from '../../keys/key-verifier.ts';
import type { SecretVault } from '../../keys/secrets/secret-vault.ts';
import type { RecordVersions } from '../../limiter/record-versions.ts';
import { VersionsAfterCommit } from '../../limiter/versions-after-commit.ts';
import type { GatewayFacts, ManagementServices } from '../../management/endpoint.ts';
import { createManagementApp } from '../../management/management-app.ts';
import { createSelfServiceApp, type SelfServiceApp } from '../../management/self-service/self-service-app.ts';
import type { SystemStatus } from '../../management/system/system-report.ts';
import { PlanService } from '../../plans/plan-service.ts';
import { PlanPreviewer } from '../../plans/preview/plan-previewer.ts';
import { gatewayVersion } from '../../platform/gateway-version.ts';
import type { Settings } from '../../settings/settings.ts';
import type { Records } from '../../storage/postgres/open-records.ts';
import { PostgresPlanPreviews } from '../../storage/postgres/plans/postgres-plan-previews.ts';
import type { Usage } from '../../usage/create-usage.ts';
import type { ReplicaContext } from '../replica-context.ts';
import type { RequestObservers } from '../request-observers.ts';
import type { Counting } from '../stores/counting.ts';
import type { RecordChangePaths } from './wire-changes.ts';
import { createSealer } from './wire-configurations.ts';
import { wireIdempotency } from './wire-idempotency.ts';
import { usageSeries } from './wire-usage.ts';

/** The same path from the source of a clone, in the image and in an installed package, where this file is under `dist/app/wiring`. */
export const CONSOLE_DIRECTORY = join(import.meta.dirname, '../../../dist/console');

/** What the management interface is built from. */
export interface ManagementParts {
  readonly records: Records;
  readonly counting: Pick<Counting, 'counters' | 'shared'>;
  readonly changes: Pick<RecordChangePaths, 'versions' | 'deferrals'>;
  readonly configurations: DesiredStateService;
  readonly jobs: BulkJobs;
  readonly webhooks: WebhookService;
  readonly streams: EventStreams;
  readonly usage: Pick<Usage, 'reader' | 'pending'>;
  readonly vault: SecretVault;
  readonly rootTokens: readonly string[];
  readonly requestIds: RequestIds;
  readonly failedCredentials: FailedCredentials;
  readonly observers: Pick<RequestObservers, 'managed'>;
  readonly system: SystemStatus;
  /** The directory of the console's files; undefined if they are not served. */
  readonly consoleDirectory: string | undefined;
  /** Undefined without `AUTHORIZE_PORT`. */
  readonly verifier?: KeyVerifier | undefined;
}

/** The apps for administrators and for consumers. */
export interface ManagementApps {
  readonly management: (req: IncomingMessage, res: ServerResponse) => void;
  /** Null if there is no self-service. */
  readonly selfService: SelfServiceApp | null;
}

/** Builds the management interface, as a request listener, and self-service. */
export function wireManagement(context: ReplicaContext, parts: ManagementParts): ManagementApps {
  const { settings, platform } = context;
  const { clock, log } = platform;
  const { records, vault, rootTokens, requestIds, failedCredentials, observers, consoleDirectory } = parts;
  const idempotency = wireIdempotency(context, records, vault);
  const services = managementServices(context, parts);
  const bodyBudget = new BodyBudget();
  const { trustedProxies, selfServicePath } = settings;
  const { deferrals } = parts.changes;
  const adminTokens = new TokenAuthenticator({ repository: records.adminTokens, vault, clock, log });
  const app = createManagementApp({
    ...services,
    credentials: { rootTokens, adminTokens, failedCredentials },
    ...{ trustedProxies, deferrals },
    idempotency,
    bodyBudget,
    consoleDirectory,
  });
  return {
    management: withRequestId(app, { requestIds, clock, onServed: observers.managed }),
    selfService:
      selfServicePath === null
        ? null
        : createSelfServiceApp(selfServicePath, {
            services,
            trustedProxies,
            idempotency,
            bodyBudget,
            deferrals,
          }),
  };
}

function managementServices(context: ReplicaContext, parts: ManagementParts): ManagementServices {
  const { settings } = context;
  const { clock, random, log } = context.platform;
  const { records, counting, changes, configurations, jobs, webhooks, streams } = parts;
  const { usage, vault, system, verifier } = parts;
  const versions = new VersionsAfterCommit(changes.versions, records.unitOfWork);
  const { defaultPlanId, pathCase } = settings;
  const plans = new PlanService({ repository: records.plans, versions, defaultPlanId, pathCase });
  return {
    ...keyServices(context, parts, versions),
    configurations,
    jobs,
    webhooks,
    streams,
    verifier,
    plans,
    previewer: new PlanPreviewer({
      ...{ plans, clock, defaultPlanId, pathCase },
      previews: new PostgresPlanPreviews(records.db),
    }),
    counters: counting.counters,
    usage: usage.reader,
    series: usageSeries(context, { records, counting, usage }),
    tokens: new AdminTokenService({ repository: records.adminTokens, vault, clock, random }),
    audit: records.audit,
    system,
    gateway: { ...gatewayFacts(settings), version: gatewayVersion() },
    clock,
    log,
  };
}

function keyServices(
  { settings, platform }: ReplicaContext,
  { records, vault, rootTokens }: ManagementParts,
  versions: RecordVersions,
): Pick<ManagementServices, 'keys' | 'imports' | 'rotations'> {
  const { clock, random } = platform;
  const { keyPrefix, secretReveal: reveal } = settings;
  const { keys: repository, keyList, secrets } = records;
  const sealer = createSealer({ settings }, { vault, rootTokens });
  return {
    keys: new KeyService({ repository, keyList, versions, vault, clock, random, keyPrefix, reveal }),
    imports: new KeyImports({ secrets, sealer, clock, random }),
    rotations: new KeyRotations({ secrets, versions, sealer, random, keyPrefix }),
  };
}

function gatewayFacts(settings: Settings): Omit<GatewayFacts, 'version'> {
  const { keyPrefix, secretReveal, defaultPlanId, customerIdHeader, pathCase } = settings;
  const { usageRetentionDays, usageDailyRetentionDays, auditRetentionDays, port, adminPort, authorizePort } =
    settings;
  return {
    keyPrefix,
    secretReveal,
    defaultPlanId,
    customerIdHeader,
    pathCase,
    usageRetentionDays,
    usageDailyRetentionDays,
    auditRetentionDays,
    publicPort: adminPort === null ? null : port,
    verifiesSecrets: authorizePort !== null,
  };
}
