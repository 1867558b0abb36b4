import type { ParsedUrlQuery } from 'node:querystring';
import type { AdminTokenService } from '../admins/admin-token-service.ts';
import type { AuditLog } from '../audit/audit-log.ts';
import type { ChangeContext } from '../audit/change-context.ts';
import type { DesiredStateService } from '../desired-state/desired-state-service.ts';
import type { ErrorCode } from '../errors.ts';
import type { EventStreams } from '../events/stream/event-streams.ts';
import type { WebhookService } from '../events/webhook-service.ts';
import type { BodySchema, FieldSchema } from '../http/body-schema.ts';
import type { BulkJobs } from '../jobs/bulk-jobs.ts';
import type { HandoverService } from '../keys/handovers/handover-service.ts';
import type { KeyImports } from '../keys/key-imports.ts';
import type { KeyRotations } from '../keys/key-rotation.ts';
import type { KeyService } from '../keys/key-service.ts';
import type { KeyVerifier } from '../keys/key-verifier.ts';
import type { ImportedSecret } from '../keys/secrets/stored-secret.ts';
import type { WindowCounters } from '../limiter/window-counters.ts';
import type { PathCase } from '../paths/path-readings.ts';
import type { Principal, RequiredScope } from '../permissions/principal.ts';
import type { PlanService } from '../plans/plan-service.ts';
import type { PlanPreviewer } from '../plans/preview/plan-previewer.ts';
import type { Clock } from '../platform/clock.ts';
import type { Logger } from '../platform/logger.ts';
import type { RecordState } from '../platform/precondition.ts';
import type { Sessions } from '../sign-in/sessions.ts';
import type { UsageSeries } from '../usage/series/usage-series.ts';
import type { UsageReader } from '../usage/usage-counts.ts';
import { entityTag } from './entity-tag.ts';
import type { HeaderName } from './openapi/headers.ts';
import type { SystemStatus } from './system/system-report.ts';

/** The services that handlers use. */
export interface ManagementServices {
  readonly keys: KeyService;
  readonly rotations: KeyRotations;
  readonly imports: KeyImports;
  readonly handovers: HandoverService;
  /** Runs work with services whose changes are committed together or not at all. */
  readonly inUnit: <Result>(work: (services: UnitServices) => Promise<Result>) => Promise<Result>;
  /** Undefined if the gateway decides for no other gateway or service. */
  readonly verifier: KeyVerifier | undefined;
  readonly plans: PlanService;
  readonly previewer: PlanPreviewer;
  readonly configurations: DesiredStateService;
  readonly counters: WindowCounters;
  readonly usage: UsageReader;
  readonly series: Pick<UsageSeries, 'read' | 'readKey'>;
  readonly tokens: AdminTokenService;
  /** Undefined if no identity provider is set. */
  readonly sessions: Pick<Sessions, 'list' | 'count' | 'end' | 'isUnchanged'> | undefined;
  readonly jobs: BulkJobs;
  readonly webhooks: WebhookService;
  readonly streams: Pick<EventStreams, 'open'>;
  readonly audit: AuditLog;
  readonly system: SystemStatus;
  /** Facts about this gateway for the console. */
  readonly gateway: GatewayFacts;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * The services for the changes of one request, all in the record store or all in one unit of work. `onDeferred` is called for each change
 * that is in force later than with the next request.
 */
export type ServicesFor = (onDeferred: () => void) => ManagementServices;

/** The services of one unit of work for what makes a secret. */
export type UnitServices = Pick<ManagementServices, 'keys' | 'imports' | 'rotations' | 'handovers'>;

/** Facts about the gateway. */
export interface GatewayFacts {
  readonly version: string;
  readonly keyPrefix: string;
  readonly secretReveal: 'always' | 'once';
  /** Null if keys without a plan are unlimited. */
  readonly defaultPlanId: string | null;
  readonly customerIdHeader: string;
  /** How paths are compared with patterns. */
  readonly pathCase: PathCase;
  readonly usageRetentionDays: number;
  readonly usageDailyRetentionDays: number;
  readonly auditRetentionDays: number;
  /** The port for consumers' requests; null if it is the port of the management interface. */
  readonly publicPort: number | null;
}

/** A request that is authenticated and has the required scopes, and whose body matches the endpoint's schema. */
export interface Call<Body> {
  /** The decoded path parameter; empty if the path has none. It may be any text, also one that can't be an id. */
  readonly id: string;
  /** The second path parameter, like `id`. */
  readonly subId: string;
  readonly query: ParsedUrlQuery;
  /** The value of a request header; undefined without it. */
  readonly header: (name: string) => string | undefined;
  readonly body: Body;
  /** Whether the method is HEAD: the body of the response is not sent. */
  readonly isHead: boolean;
  /** The type that the Accept header prefers: the first if it has no preference, undefined if it accepts none of them. */
  readonly prefers: (types: readonly string[]) => string | undefined;
  readonly principal: Principal;
  /** The same for all retries of a request with an `Idempotency-Key`; undefined without that header. */
  readonly operationId: string | undefined;
  /** The context of every change that the request makes, with the preconditions of the request. */
  readonly change: ChangeContext;
}

/** A response that is streamed as text. */
export class StreamedText {
  readonly contentType: string;
  readonly chunks: Iterable<string> | AsyncIterable<string>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(contentType: string, chunks: StreamedText['chunks'], headers: StreamedText['headers'] = {}) {
    this.contentType = contentType;
    this.chunks = chunks;
    this.headers = headers;
  }
}

/** A JSON response with additional headers. */
export class Reply {
  readonly body: object;
  readonly headers: Readonly<Record<string, string>>;
  readonly isCreated: boolean;

  private constructor(body: object, headers: Reply['headers'], isCreated: boolean) {
    this.body = body;
    this.headers = headers;
    this.isCreated = isCreated;
  }

  /** A response with 201, the `Location` of the new record and its `ETag`. */
  static created(location: string, state: RecordState, body: object): Reply {
    return new Reply(body, { Location: location, ETag: entityTag(state) }, true);
  }

  /** A response with 201 and the `Location` of a new record that has no `ETag`. */
  static made(location: string, body: object): Reply {
    return new Reply(body, { Location: location }, true);
  }

  /** A response with these headers. */
  static with(headers: Reply['headers'], body: object): Reply {
    return new Reply(body, headers, false);
  }

  /** A response with the `ETag` of the shown record. */
  static tagged(state: RecordState, body: object): Reply {
    return new Reply(body, { ETag: entityTag(state) }, false);
  }
}

/** A JSON schema of a response or of a part of it. */
export type ResponseSchema = Readonly<Record<string, unknown>>;

/** An endpoint: for its route, the check of its body, its response and its documentation. `Body` is what `body` lets through. */
export interface Endpoint<Body = unknown> {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** Has at most two parameters, in braces as in OpenAPI. */
  readonly path: string;
  /** Unique among all endpoints. */
  readonly operationId: string;
  readonly summary: string;
  /** The scopes that the principal needs. */
  readonly scope: RequiredScope;
  /** The endpoint is for consumers, and about the key that they present. */
  readonly forConsumers?: true;
  /** What authorizes the request is in its body: it needs no credential, and its response is never repeated for an `Idempotency-Key`. */
  readonly forHolders?: true;
  readonly query?: Readonly<Record<string, FieldSchema>>;
  /** Missing if the endpoint reads no body. */
  readonly body?: BodySchema;
  /** The longest body; missing = the default of most endpoints. */
  readonly bodyLimitBytes?: number;
  /** An error with this code counts as a wrong credential: repeated guesses get 429. */
  readonly limitsGuesses?: ErrorCode;
  /** The secrets from outside in a body that fits the schema: a response may say that they are taken. */
  givenSecrets?(body: Body): readonly ImportedSecret[];
  readonly status: 200 | 201;
  /** The endpoint may also create the record, and then responds with 201. */
  readonly mayCreate?: true;
  /** The response has an `ETag`. */
  readonly tagged?: true;
  /**
   * A request with an `Idempotency-Key` is handled outside of a transaction: the handler waits for other stores than that of the records, its
   * entry in the audit log must stay when it rejects, or it reads with services that are the same for all requests.
   */
  readonly withoutTransaction?: true;
  /** The endpoint obeys `If-Match` and `If-None-Match`. */
  readonly conditional?: true;
  readonly response: ResponseSchema;
  /** Whether the response may also be a CSV file. */
  readonly csv?: true;
  /** Whether it may also be a YAML document. */
  readonly yaml?: true;
  /** The response is a stream of server-sent events, and no JSON. */
  readonly eventStream?: true;
  /** Headers that only this endpoint's response has. */
  readonly headers?: readonly HeaderName[];
  /** The error codes of this endpoint, besides those that all endpoints have. */
  readonly errors: readonly ErrorCode[];
  /**
   * Checks what takes long outside of the stores, such as DNS, before `handle`: a transaction for an `Idempotency-Key` begins only
   * afterwards. If it rejects, so does the work of the request. It runs for a retry as well, whose stored response does not depend on it.
   */
  check?(call: Pick<Call<Body>, 'body'>, services: ManagementServices): Promise<void>;
  /**
   * Resolves with a body as `response` describes it, a `Reply` with such a body, or a `StreamedText`. Rejects with an error of the
   * catalogue. A method and not a property, so that endpoints with different bodies fit into one list: the app calls it only with a body that
   * matches the schema.
   */
  handle(call: Call<Body>, services: ManagementServices): Promise<object>;
}
