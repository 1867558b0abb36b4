import type { ParsedUrlQuery } from 'node:querystring';
import type { AdminTokenService } from '../admins/admin-token-service.ts';
import type { Principal, RequiredScope } from '../admins/principal.ts';
import type { AuditLog } from '../audit/audit-log.ts';
import type { ChangeContext } from '../audit/change-context.ts';
import type { DesiredStateService } from '../desired-state/desired-state-service.ts';
import type { ErrorCode } from '../errors.ts';
import type { BodySchema, FieldSchema } from '../http/body-schema.ts';
import type { KeyImports } from '../keys/key-imports.ts';
import type { KeyRotations } from '../keys/key-rotation.ts';
import type { KeyService } from '../keys/key-service.ts';
import type { WindowCounters } from '../limiter/window-counters.ts';
import type { PlanService } from '../plans/plan-service.ts';
import type { Clock } from '../platform/clock.ts';
import type { Logger } from '../platform/logger.ts';
import type { RecordState } from '../platform/precondition.ts';
import type { UsageSeries } from '../usage/series/usage-series.ts';
import type { UsageReader } from '../usage/usage.ts';
import { entityTag } from './entity-tag.ts';
import type { HeaderName } from './openapi/headers.ts';
import type { SystemStatus } from './system/system-report.ts';

/** What the handlers work with. */
export interface ManagementServices {
  readonly keys: KeyService;
  readonly rotations: KeyRotations;
  readonly imports: KeyImports;
  readonly plans: PlanService;
  readonly configurations: DesiredStateService;
  readonly counters: WindowCounters;
  readonly usage: UsageReader;
  readonly series: Pick<UsageSeries, 'read' | 'readKey'>;
  readonly tokens: AdminTokenService;
  readonly audit: AuditLog;
  readonly system: SystemStatus;
  /** What a console needs to know of this gateway. */
  readonly gateway: GatewayFacts;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What the gateway says of itself. */
export interface GatewayFacts {
  readonly version: string;
  readonly keyPrefix: string;
  readonly secretReveal: 'always' | 'once';
  /** Null: keys without a plan are unlimited. */
  readonly defaultPlanId: string | null;
  readonly customerIdHeader: string;
  readonly usageRetentionDays: number;
  readonly usageDailyRetentionDays: number;
  readonly auditRetentionDays: number;
  /** Where consumers send requests, if that is not the port of the management interface; else null. */
  readonly publicPort: number | null;
}

/** One request, already authenticated and allowed by its scopes; its body has passed the endpoint's schema. */
export interface Call<Body> {
  /** The path's parameter, decoded, empty where the path has none. It may be any text: an id of the wrong form names nothing. */
  readonly id: string;
  readonly query: ParsedUrlQuery;
  readonly body: Body;
  /** The one of these types that the Accept header prefers, the first where it has no preference; undefined when it wants none of them. */
  readonly prefers: (types: readonly string[]) => string | undefined;
  readonly principal: Principal;
  /** The same for all sendings of a request with an `Idempotency-Key`; undefined for one without. */
  readonly operationId: string | undefined;
  /** For every change that the request makes; holds what it demands of the record, too. */
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

  /** Responds with 201 and says where that which was made is shown, and in which state it is. */
  static created(location: string, state: RecordState, body: object): Reply {
    return new Reply(body, { Location: location, ETag: entityTag(state) }, true);
  }

  /** Says in which state the shown record is. */
  static tagged(state: RecordState, body: object): Reply {
    return new Reply(body, { ETag: entityTag(state) }, false);
  }
}

/** A JSON schema of a response or of a part of it. */
export type ResponseSchema = Readonly<Record<string, unknown>>;

/** What an endpoint is: enough to route it, to check its body, to respond to it and to document it. */
export interface EndpointDefinition<Body> {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** With at most one parameter, in braces, as OpenAPI writes it. */
  readonly path: string;
  /** Unique among all endpoints. */
  readonly operationId: string;
  readonly summary: string;
  /** What the principal must be allowed. */
  readonly scope: RequiredScope;
  /** The endpoint is for consumers, who present the key that it is about. */
  readonly forConsumers?: true;
  readonly query?: Readonly<Record<string, FieldSchema>>;
  /** Missing: the endpoint reads no body. */
  readonly body?: BodySchema;
  /** Longest body; missing = as long as that of most endpoints. */
  readonly bodyLimitBytes?: number;
  /** A key that is not found counts like a wrong credential: who goes on with guesses gets 429. */
  readonly limitsGuesses?: true;
  readonly status: 200 | 201;
  /** The endpoint may also make what it is about, and then responds with 201. */
  readonly mayCreate?: true;
  /** The response has an `ETag`. */
  readonly tagged?: true;
  /** The endpoint obeys `If-Match` and `If-None-Match`. */
  readonly conditional?: true;
  readonly response: ResponseSchema;
  /** Whether the response may also be a CSV file. */
  readonly csv?: true;
  /** Whether it may also be a YAML document. */
  readonly yaml?: true;
  /** Headers that only this endpoint's response has. */
  readonly headers?: readonly HeaderName[];
  /** The codes that this endpoint may respond besides those that all may. */
  readonly errors: readonly ErrorCode[];
  /** Resolves with what `response` describes, as it is or in a `Reply`, or with a `StreamedText`; rejects with an error of the catalogue. */
  readonly handle: (call: Call<Body>, services: ManagementServices) => Promise<object>;
}

/** An endpoint as the app mounts it: the type of its body is known only to itself. */
export type Endpoint = EndpointDefinition<unknown>;

/**
 * Makes an endpoint whose handler sees its body as `Body`. Safe because the app calls the handler only with a body that passed
 * the schema beside it: the two are written together and must agree.
 */
export function endpoint<Body = unknown>(definition: EndpointDefinition<Body>): Endpoint {
  const { handle } = definition;
  return {
    ...definition,
    handle: (call, services) => handle({ ...call, body: call.body as Body }, services),
  };
}
