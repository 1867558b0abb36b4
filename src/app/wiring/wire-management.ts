import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { AdminTokenService } from '../../admins/admin-token-service.ts';
import { TokenAuthenticator } from '../../admins/token-authenticator.ts';
import type { EventStreams } from '../../events/stream/event-streams.ts';
import { BodyBudget } from '../../http/body-budget.ts';
import type { FailedCredentials } from '../../http/credentials/failed-credentials.ts';
import type { RequestIds } from '../../http/request-id.ts';
import { withRequestId } from '../../http/with-request-id.ts';
import type { ResponseStore } from '../../idempotency/response-store.ts';
import {
  HANDOVER_LOOK_UPS,
  HandoverService,
  MAX_REUSED_HANDOVERS,
} from '../../keys/handovers/handover-service.ts';
import { keyIdMaker } from '../../keys/key-id.ts';
import { KeyImports } from '../../keys/key-imports.ts';
import { KeyRotations } from '../../keys/key-rotation.ts';
import { KeyService } from '../../keys/key-service.ts';
import type { KeyVerifier } from '../../keys/key-verifier.ts';
import { ChangeVersions } from '../../limiter/changes/change-versions.ts';
import type { GatewayFacts, ManagementServices, ServicesFor } from '../../management/endpoint.ts';
import { createHandoverApp, type HandoverApp } from '../../management/handovers/handover-app.ts';
import { HANDOVER_PATH } from '../../management/handovers/opened-handover.ts';
import { createManagementApp } from '../../management/management-app.ts';
import { createSelfServiceApp, type SelfServiceApp } from '../../management/self-service/self-service-app.ts';
import type { SystemStatus } from '../../management/system/system-report.ts';
import { SELF_SERVICE_PATH } from '../../paths/path-matcher.ts';
import { PlanService } from '../../plans/plan-service.ts';
import { PlanPreviewer } from '../../plans/preview/plan-previewer.ts';
import { BoundedCache } from '../../platform/bounded-cache.ts';
import { ConcurrencyLimit } from '../../platform/concurrency/concurrency-limit.ts';
import { gatewayVersion } from '../../platform/gateway-version.ts';
import { idMaker } from '../../platform/id-maker.ts';
import { LOOPBACK_HOST } from '../../platform/loopback-host.ts';
import type { SecretVault } from '../../secrets/secret-vault.ts';
import type { Settings } from '../../settings/settings.ts';
import type { People } from '../../sign-in/people.ts';
import type { Records } from '../../storage/postgres/open-records.ts';
import { PostgresPlanPreviews } from '../../storage/postgres/plans/postgres-plan-previews.ts';
import type { RecordScope } from '../../storage/postgres/record-units.ts';
import type { Usage } from '../../usage/create-usage.ts';
import type { ReplicaContext } from '../replica-context.ts';
import type { RequestObservers } from '../request-observers.ts';
import type { Counting } from '../stores/counting.ts';
import type { RecordChangePaths } from './wire-changes.ts';
import { type ConfigurationsIn, createSealer } from './wire-configurations.ts';
import type { WiredEvents } from './wire-events.ts';
import { wireIdempotency } from './wire-idempotency.ts';
import type { WiredJobs } from './wire-jobs.ts';
import { usageSeries } from './wire-usage.ts';

/** The same path from the source of a clone, in the image and in an installed package, where this file is under `dist/app/wiring`. */
export const CONSOLE_DIRECTORY = join(import.meta.dirname, '../../../dist/console');

/** The pages for consumers, likewise. */
export const PORTAL_DIRECTORY = join(import.meta.dirname, '../../../dist/portal');

/** What the management interface is built from. */
export interface ManagementParts {
  readonly records: Records;
  readonly counting: Pick<Counting, 'counters' | 'shared'>;
  readonly changes: Pick<RecordChangePaths, 'versions'>;
  readonly configurationsIn: ConfigurationsIn;
  readonly jobsIn: WiredJobs['jobsIn'];
  readonly webhooksIn: WiredEvents['webhooksIn'];
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
  /** Undefined without `OIDC_ISSUER`. */
  readonly people?: People | undefined;
  /** Undefined without `AUTHORIZE_PORT`. */
  readonly verifier?: KeyVerifier | undefined;
}

/** The apps for administrators and for consumers. */
export interface ManagementApps {
  readonly management: (req: IncomingMessage, res: ServerResponse) => void;
  /** Null if there is no self-service. */
  readonly selfService: SelfServiceApp | null;
  /** The page of hand-over links; null without self-service. */
  readonly handovers: HandoverApp | null;
}

/** Builds the management interface, as a request listener, and self-service. */
export function wireManagement(context: ReplicaContext, parts: ManagementParts): ManagementApps {
  const { settings, platform } = context;
  const { clock, log } = platform;
  const { records, vault, rootTokens, requestIds, failedCredentials, observers, consoleDirectory } = parts;
  const servicesIn = managementServices(context, parts);
  const servicesFor = servicesIn(records);
  const services = servicesFor(() => {});
  const idempotency = wireIdempotency(context, storeWith(servicesIn, records.responses), {
    ...{ vault, handovers: services.handovers },
  });
  const bodyBudget = new BodyBudget();
  const { trustedProxies, selfServicePath, rootTokenSignIn } = settings;
  const { people } = parts;
  const adminTokens = new TokenAuthenticator({ repository: records.adminTokens, vault, clock, log });
  const app = createManagementApp({
    ...services,
    credentials: { rootTokens, adminTokens, failedCredentials, people, rootTokenSignIn },
    ...{ trustedProxies, servicesFor, people },
    idempotency,
    bodyBudget,
    consoleDirectory,
  });
  const common = { services, trustedProxies, idempotency, bodyBudget, servicesFor };
  const served = { requestIds, clock, onServed: observers.managed };
  const links =
    selfServicePath === null
      ? null
      : createHandoverApp(selfServicePath, { ...common, failedCredentials, pages: PORTAL_DIRECTORY });
  return {
    management: withRequestId(app, served),
    selfService: selfServicePath === null ? null : createSelfServiceApp(selfServicePath, common),
    handovers: links && { path: links.path, serve: withRequestId(links.serve, served) },
  };
}

type ServicesIn = (scope: RecordScope) => ServicesFor;

/** The same store: work gets the services whose changes belong to the unit of work. */
function storeWith<Unit extends RecordScope>(
  servicesIn: ServicesIn,
  store: ResponseStore<Unit>,
): ResponseStore<ServicesFor> {
  return {
    performOnce: (request, work, responseTo) =>
      store.performOnce(request, (unit) => work(servicesIn(unit)), responseTo),
    prune: (nowMs, keptMs, goesOn) => store.prune(nowMs, keptMs, goesOn),
    after: (id, limit) => store.after(id, limit),
    replace: (response, sealed) => store.replace(response, sealed),
  };
}

/** The services that change records are built for each request; all others are the same for all. */
function managementServices(context: ReplicaContext, parts: ManagementParts): ServicesIn {
  const { settings, platform } = context;
  const { records, counting, streams, usage, system, verifier } = parts;
  const changing = changingServices(context, parts);
  const { defaultPlanId, pathCase } = settings;
  const previews = new PostgresPlanPreviews(records.db);
  const { plans } = changing(records, () => {});
  const shared = {
    streams,
    verifier,
    counters: counting.counters,
    usage: usage.reader,
    series: usageSeries(context, { records, counting, usage }),
    sessions: parts.people?.sessions,
    audit: records.audit,
    previewer: new PlanPreviewer({ plans, previews, clock: platform.clock, defaultPlanId, pathCase }),
    system,
    gateway: { ...gatewayFacts(settings), version: gatewayVersion() },
    clock: platform.clock,
    log: platform.log,
  };
  return (scope) => (onDeferred) => ({ ...shared, ...changing(scope, onDeferred) });
}

type ChangingServices = Pick<
  ManagementServices,
  | 'keys'
  | 'imports'
  | 'rotations'
  | 'handovers'
  | 'inUnit'
  | 'plans'
  | 'tokens'
  | 'configurations'
  | 'jobs'
  | 'webhooks'
>;

function changingServices(
  { settings, platform }: ReplicaContext,
  { records, vault, rootTokens, changes, configurationsIn, jobsIn, webhooksIn }: ManagementParts,
): (scope: RecordScope, onDeferred: () => void) => ChangingServices {
  const { clock, random } = platform;
  const { keyPrefix, secretReveal: reveal, defaultPlanId, pathCase } = settings;
  const sealer = createSealer({ settings }, { vault, rootTokens });
  const makeId = keyIdMaker(clock, random);
  const makeTokenId = idMaker('adm_', clock, random);
  const handoverParts = {
    ...{ vault, clock, random, reveal, lookUps: new ConcurrencyLimit(HANDOVER_LOOK_UPS) },
    reuses: new BoundedCache<number>(MAX_REUSED_HANDOVERS),
    makeId: idMaker('hnd_', clock, random),
    pageUrl: (host: string | undefined) => handoverPageUrl(settings, host),
  };
  const servicesIn = (scope: RecordScope, onDeferred: () => void): ChangingServices => {
    const { keys: repository, keyList, secrets } = scope;
    const versions = new ChangeVersions({ versions: changes.versions, unit: scope, onDeferred });
    return {
      keys: new KeyService({
        ...{ repository, keyList, versions, vault, clock, random, makeId, keyPrefix, reveal },
      }),
      imports: new KeyImports({ secrets, sealer, clock, makeId }),
      rotations: new KeyRotations({ secrets, versions, sealer, random, keyPrefix }),
      handovers: new HandoverService({ repository: scope.handovers, ...handoverParts }),
      inUnit: (work) => scope.inUnit((unit) => work(servicesIn(unit, onDeferred))),
      plans: new PlanService({
        ...{ repository: scope.plans, committed: records.plans, versions, defaultPlanId, pathCase },
      }),
      tokens: new AdminTokenService({ repository: scope.adminTokens, vault, random, makeId: makeTokenId }),
      configurations: configurationsIn(scope, onDeferred),
      jobs: jobsIn(scope),
      webhooks: webhooksIn(scope),
    };
  };
  return servicesIn;
}

/**
 * Where consumers find the page of links. Without `PUBLIC_URL` only a gateway on this machine has one, for development: the host of a
 * request to the management interface says nothing about the public address of others, or its scheme.
 */
function handoverPageUrl(
  {
    publicUrl,
    selfServicePath,
    adminPort,
    port,
  }: Pick<Settings, 'publicUrl' | 'selfServicePath' | 'adminPort' | 'port'>,
  host = '',
): string | undefined {
  const [address, name] = LOOPBACK_HOST.exec(host) ?? [];
  const local = adminPort === null ? address : name && `${name}:${port}`;
  const base = publicUrl ?? (local && `http://${local}`);
  if (base === undefined || selfServicePath === null) return undefined;
  return base + selfServicePath + HANDOVER_PATH.slice(SELF_SERVICE_PATH.length);
}

function gatewayFacts(settings: Settings): Omit<GatewayFacts, 'version'> {
  const { keyPrefix, secretReveal, defaultPlanId, customerIdHeader, pathCase } = settings;
  const { usageRetentionDays, usageDailyRetentionDays, auditRetentionDays, port, adminPort } = settings;
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
  };
}
