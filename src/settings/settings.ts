// The room `settings`: the table of settings, and how their values are read.
// In: environment variables as text.
// Out: typed, checked settings, or a list of all that is wrong with them.

import { isIP } from 'node:net';
import { SELF_SERVICE_PATH } from '../paths/path-matcher.ts';
import { PATH_CASES } from '../paths/path-readings.ts';
import { OWNER, OWNER_FORM } from '../plans/owner-name.ts';
import { NEW_PLAN_ID } from '../plans/plan-id.ts';
import { StartFiles } from '../platform/process/start-files.ts';
import { parseScopesMap } from '../sign-in/scopes-map.ts';
import { listedPatterns, patternsOfFile } from './endpoint-patterns.ts';
import { misspeltVariables } from './misspelt-variables.ts';
import { type Environment, readTable, type Setting, secret, setting, type ValuesOf } from './read-setting.ts';
import { redisUrl } from './redis-url.ts';
import {
  accessLog,
  authorizeTokens,
  backendUrl,
  booleanWord,
  color,
  consoleSwitch,
  corsOrigins,
  count,
  encryptionKeys,
  headerName,
  metricsPerKey,
  milliseconds,
  networks,
  oneOf,
  optional,
  path,
  pattern,
  percentages,
  port,
  postgresUrl,
  publicUrl,
  rootTokens,
  selfServicePath,
  supportLink,
  text,
  webLink,
} from './setting-parsers.ts';
import {
  claimName,
  clientText,
  issuer,
  oauthScopes,
  publicOrigin,
  signInFaults,
} from './sign-in-settings.ts';
import { readTracing } from './tracing-settings.ts';

const HOST_NAME = /^[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$/;
const HOST = text((value) => isIP(value) > 0 || HOST_NAME.test(value), 'an IP address or a host name');
/** Not `tga`, `tgh`, `tgs` or `whsec`, which other secrets have. */
const KEY_PREFIX = /^(?!(?:tg[ahs]|whsec)$)[A-Za-z][A-Za-z0-9]{0,15}$/;
/** The characters of a URI reference, RFC 3986 appendix A. */
const EVENT_SOURCE = /^[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]{1,255}$/;

/** Without control characters, and those that turn the direction of a text around. */
const PORTAL_NAME = /^[^\p{C}]{1,80}$/u;

/** The table of all settings. Each is described in `docs/settings.md`, and a test checks that both agree. */
export const SETTINGS = {
  backendUrl: setting('BACKEND_URL', '', optional(backendUrl)),
  rootTokens: secret('ROOT_TOKEN', rootTokens),
  encryptionKeys: secret('ENCRYPTION_KEY', encryptionKeys),
  databaseUrl: secret('DATABASE_URL', optional(postgresUrl)),
  redisUrl: secret('REDIS_URL', optional(redisUrl)),
  redisMode: setting('REDIS_MODE', 'single', oneOf('single', 'cluster', 'sentinel')),
  host: setting('HOST', '', optional(HOST)),
  port: setting('PORT', '8080', port),
  adminPort: setting('ADMIN_PORT', '', optional(port)),
  authorizePort: setting('AUTHORIZE_PORT', '', optional(port)),
  authorizeHost: setting('AUTHORIZE_HOST', '', optional(HOST)),
  authorizeTokens: secret('AUTHORIZE_TOKEN', authorizeTokens),
  opsHost: setting('OPS_HOST', '', optional(HOST)),
  opsPort: setting('OPS_PORT', '9090', port),
  dataDir: setting('DATA_DIR', './data', path),
  autoMigrate: setting('AUTO_MIGRATE', '', optional(booleanWord)),
  defaultPlanId: {
    ...setting(
      'DEFAULT_PLAN_ID',
      'default',
      optional(pattern(NEW_PLAN_ID, 'the rateLimitId of a plan, or empty for no limit')),
    ),
    emptyCounts: true,
  },
  customerIdHeader: setting('CUSTOMER_ID_HEADER', 'x-customer-id', headerName),
  keyPrefix: setting(
    'KEY_PREFIX',
    'tg',
    pattern(
      KEY_PREFIX,
      'a letter and up to 15 letters and digits, and not the prefix of admin tokens, handover links, sessions or webhook secrets',
    ),
  ),
  secretReveal: setting('SECRET_REVEAL', 'always', oneOf('always', 'once')),
  forwardAuthorization: setting('FORWARD_AUTHORIZATION', 'true', booleanWord),
  trustedProxies: setting('TRUSTED_PROXIES', '', networks),
  corsAllowedOrigins: setting('CORS_ALLOWED_ORIGINS', '', corsOrigins),
  selfServicePath: {
    ...setting('SELF_SERVICE_PATH', SELF_SERVICE_PATH, optional(selfServicePath)),
    emptyCounts: true,
  },
  publicUrl: setting('PUBLIC_URL', '', optional(publicUrl)),
  portal: setting('PORTAL', 'off', oneOf('on', 'off')),
  portalName: setting('PORTAL_NAME', 'API portal', pattern(PORTAL_NAME, 'a text of at most 80 characters')),
  portalLogoFile: setting('PORTAL_LOGO_FILE', '', optional(path)),
  portalDocsUrl: setting('PORTAL_DOCS_URL', '', optional(webLink)),
  portalSupportUrl: setting('PORTAL_SUPPORT_URL', '', optional(supportLink)),
  portalColor: setting('PORTAL_COLOR', '', optional(color)),
  console: setting('CONSOLE', 'on', consoleSwitch),
  publicAdminUrl: setting('PUBLIC_ADMIN_URL', '', optional(publicOrigin)),
  rootTokenSignIn: setting('ROOT_TOKEN_SIGN_IN', 'on', oneOf('on', 'off')),
  oidcIssuer: setting('OIDC_ISSUER', '', optional(issuer)),
  oidcClientId: setting('OIDC_CLIENT_ID', '', optional(clientText)),
  oidcClientSecret: secret('OIDC_CLIENT_SECRET', optional(clientText)),
  oidcScopes: setting('OIDC_SCOPES', 'openid profile email', oauthScopes),
  oidcScopesClaim: setting('OIDC_SCOPES_CLAIM', 'groups', claimName),
  oidcScopesMap: setting('OIDC_SCOPES_MAP', '', optional(parseScopesMap)),
  oidcSessionHours: setting('OIDC_SESSION_HOURS', '8', count(1, 24)),
  oidcAudience: setting('OIDC_AUDIENCE', '', optional(clientText)),
  limiterFailureMode: setting('LIMITER_FAILURE_MODE', 'local', oneOf('local', 'open', 'closed')),
  redisTimeoutMs: setting('REDIS_TIMEOUT_MS', '200', milliseconds(1, 60_000)),
  backendTimeoutMs: setting('BACKEND_TIMEOUT_MS', '30000', milliseconds(1, 3_600_000)),
  backendIdleMs: setting('BACKEND_IDLE_MS', '30000', milliseconds(1, 3_600_000)),
  keepAliveMs: setting('KEEP_ALIVE_MS', '65000', milliseconds(15_000, 3_600_000)),
  backendConnections: setting('BACKEND_CONNECTIONS', '256', count(1, 65_535)),
  backendConnectionsPerKey: setting('BACKEND_CONNECTIONS_PER_KEY', '', optional(count(1, 65_535))),
  upgradesPerKey: setting('UPGRADES_PER_KEY', '1024', count(1, 65_535)),
  requestBodyMinBytesPerSecond: setting('REQUEST_BODY_MIN_BYTES_PER_SECOND', '256', count(0, 1_000_000_000)),
  responseBodyMinBytesPerSecond: setting(
    'RESPONSE_BODY_MIN_BYTES_PER_SECOND',
    '256',
    count(0, 1_000_000_000),
  ),
  endpointPatterns: {
    ...setting('ENDPOINT_PATTERNS', '', listedPatterns),
    parseFile: patternsOfFile,
  },
  pathCase: setting('PATH_CASE', 'insensitive', oneOf(...PATH_CASES)),
  configFile: setting('CONFIG_FILE', '', optional(path)),
  configOwner: setting('CONFIG_OWNER', 'config-file', pattern(OWNER, OWNER_FORM)),
  configPrune: setting('CONFIG_PRUNE', 'false', booleanWord),
  configForce: setting('CONFIG_FORCE', 'false', booleanWord),
  usageFlushMs: setting('USAGE_FLUSH_MS', '10000', milliseconds(100, 50_000)),
  usageRetentionDays: setting('USAGE_RETENTION_DAYS', '90', count(1, 3650)),
  usageDailyRetentionDays: setting('USAGE_DAILY_RETENTION_DAYS', '400', count(1, 3650)),
  auditRetentionDays: setting('AUDIT_RETENTION_DAYS', '365', count(1, 36_500)),
  eventsSource: setting('EVENTS_SOURCE', '/tollgate', pattern(EVENT_SOURCE, 'a URI reference')),
  eventsThresholds: { ...setting('EVENTS_THRESHOLDS', '80,100', percentages), emptyCounts: true },
  webhookAllowHttp: setting('WEBHOOK_ALLOW_HTTP', 'false', booleanWord),
  webhookAllowedNetworks: setting('WEBHOOK_ALLOWED_NETWORKS', '', networks),
  shutdownDelayMs: setting('SHUTDOWN_DELAY_MS', '', optional(milliseconds(0, 600_000))),
  shutdownDrainMs: setting('SHUTDOWN_DRAIN_MS', '25000', milliseconds(0, 3_600_000)),
  workers: setting('WORKERS', '1', count(1, 256)),
  accessLog: setting('ACCESS_LOG', 'all', accessLog),
  metricsPerKey: setting('METRICS_PER_KEY', 'off', metricsPerKey),
  logLevel: setting('LOG_LEVEL', 'info', oneOf('silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace')),
} as const satisfies Record<string, Setting<unknown>>;

const LOOPBACK = '127.0.0.1';
const EVERYWHERE = '0.0.0.0';
/** Longer than load balancers usually take to notice that a replica is no longer ready. */
const PRODUCTION_DELAY_MS = 3000;

/** Every variable that the table reads. */
const VARIABLES = Object.values(SETTINGS).flatMap(({ variable, parseFile }) =>
  parseFile === undefined ? [variable] : [variable, `${variable}_FILE`],
);

/** The settings that say where the records are. */
const RECORD_TABLE = {
  databaseUrl: SETTINGS.databaseUrl,
  dataDir: SETTINGS.dataDir,
  defaultPlanId: SETTINGS.defaultPlanId,
  pathCase: SETTINGS.pathCase,
  logLevel: SETTINGS.logLevel,
};

type Values = ValuesOf<typeof SETTINGS>;

/** All settings, read once, all checked, and frozen. Durations are milliseconds. */
export interface Settings
  extends Omit<
    Values,
    'host' | 'opsHost' | 'authorizeHost' | 'autoMigrate' | 'shutdownDelayMs' | 'backendConnectionsPerKey'
  > {
  readonly host: string;
  /** `HOST` where `AUTHORIZE_HOST` is not set. */
  readonly authorizeHost: string;
  /** `HOST` where `OPS_HOST` is not set. */
  readonly opsHost: string;
  readonly autoMigrate: boolean;
  readonly shutdownDelayMs: number;
  /** Half of `BACKEND_CONNECTIONS`, and at least one, if `BACKEND_CONNECTIONS_PER_KEY` is not set. */
  readonly backendConnectionsPerKey: number;
  /** From OpenTelemetry's own variables; null = no traces. */
  readonly tracing: ReturnType<typeof readTracing>;
}

/** The environment is invalid. `faults` has one sentence for each fault, none with a secret in it. */
export class InvalidSettings extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(
      `The settings have ${faults.length} fault(s):\n${faults.map((fault) => `  - ${fault}`).join('\n')}`,
    );
    this.name = 'InvalidSettings';
    this.faults = faults;
  }
}

/** Those of `RECORD_TABLE`. */
export type RecordSettings = Pick<Settings, keyof typeof RECORD_TABLE>;

/** Reads every setting. Throws `InvalidSettings` with all faults at once. */
export function readSettings(environment: Environment, files = new StartFiles()): Settings {
  const faults: string[] = [];
  const values = readTable(SETTINGS, { environment, files }, faults);
  if (values.backendUrl === null && values.authorizePort === null)
    faults.unshift('BACKEND_URL: is required without AUTHORIZE_PORT');
  faults.push(...faultsBetween(values, environment));
  faults.push(...misspeltVariables(environment, VARIABLES));
  const tracing = readTracing(environment, faults);
  if (faults.length > 0) throw new InvalidSettings(faults);
  const isProduction = environment.NODE_ENV === 'production';
  // Without a database the gateway serves one machine: it listens on loopback unless HOST is set.
  const host = values.host ?? (values.databaseUrl === null ? LOOPBACK : EVERYWHERE);
  return Object.freeze({
    ...values,
    host,
    authorizeHost: values.authorizeHost ?? host,
    opsHost: values.opsHost ?? host,
    backendConnectionsPerKey:
      values.backendConnectionsPerKey ?? Math.max(1, Math.floor(values.backendConnections / 2)),
    autoMigrate: values.autoMigrate ?? !isProduction,
    shutdownDelayMs: values.shutdownDelayMs ?? (isProduction ? PRODUCTION_DELAY_MS : 0),
    tracing,
  });
}

/** Reads only the settings of a program that uses nothing but the records. Throws like `readSettings`. */
export function readRecordSettings(environment: Environment): RecordSettings {
  return readPart(RECORD_TABLE, environment);
}

/** The settings of the records and the encryption keys: the new key first, then the old ones. Throws like `readSettings`. */
export function readRotationSettings(
  environment: Environment,
): RecordSettings & Pick<Settings, 'encryptionKeys'> {
  return readPart({ ...RECORD_TABLE, encryptionKeys: NEW_AND_OLD_KEYS }, environment);
}

const NEW_AND_OLD_KEYS = secret('ENCRYPTION_KEY', (value) => {
  const keys = encryptionKeys(value);
  if (keys.length < 2) throw new Error('must list the new key first and then the old ones');
  return keys;
});

function readPart<T extends typeof RECORD_TABLE>(table: T, environment: Environment): ValuesOf<T> {
  const faults: string[] = [];
  const values = readTable(table, { environment, files: new StartFiles() }, faults);
  faults.push(...misspeltVariables(environment, VARIABLES));
  if (environment.NODE_ENV === 'production' && values.databaseUrl === null) {
    faults.push('DATABASE_URL: is required with NODE_ENV=production');
  }
  if (faults.length > 0) throw new InvalidSettings(faults);
  return Object.freeze(values);
}

/** The settings as they may be shown: by variable name, secrets as `***` or `not set`. */
export function maskedSettings(settings: Settings): Readonly<Record<string, unknown>> {
  const shown: Record<string, unknown> = {};
  for (const [name, row] of Object.entries(SETTINGS)) {
    const value: unknown = settings[name as keyof typeof SETTINGS];
    const isSet = Array.isArray(value) ? value.length > 0 : value !== null;
    if (row.secret) shown[row.variable] = isSet ? '***' : 'not set';
    else shown[row.variable] = writable(value);
  }
  return shown;
}

/** As JSON writes it in a way that can be read. */
function writable(value: unknown): unknown {
  if (value instanceof URL) return value.href;
  return value instanceof Map ? Object.fromEntries(value) : value;
}

/** Checks rules between settings. A setting that is invalid by itself is undefined here, and adds no further fault. */
function faultsBetween(values: Partial<Values>, environment: Environment): readonly string[] {
  const faults: string[] = [];
  const { port, adminPort, authorizePort, opsPort, workers } = values;
  const ports = [port, adminPort, authorizePort, opsPort].filter((value) => Boolean(value));
  if (new Set(ports).size < ports.length)
    faults.push('PORT, ADMIN_PORT, AUTHORIZE_PORT, OPS_PORT: must differ from each other');

  if (values.portal === 'on' && values.selfServicePath === null)
    faults.push('PORTAL: needs self-service, so SELF_SERVICE_PATH must not be empty');

  if (workers !== undefined && workers > 1 && [port, adminPort, authorizePort].includes(0)) {
    faults.push('PORT, ADMIN_PORT, AUTHORIZE_PORT: must not be 0 with WORKERS above 1, which share them');
  }

  // Several processes can't share what one keeps for itself: each would count by itself and have its own encryption key.
  const sharing = reasonToShare(values, environment);
  if (sharing !== undefined && values.databaseUrl === null)
    faults.push(`DATABASE_URL: is required with ${sharing}`);
  if (sharing !== undefined && values.redisUrl === null)
    faults.push(`REDIS_URL: is required with ${sharing}`);
  const keeping = sharing ?? (values.databaseUrl === null ? undefined : 'DATABASE_URL');
  if (keeping !== undefined && values.rootTokens?.length === 0)
    faults.push(`ROOT_TOKEN: is required with ${keeping}`);
  if (keeping !== undefined && values.encryptionKeys?.length === 0)
    faults.push(`ENCRYPTION_KEY: is required with ${keeping}`);

  if (
    values.redisMode !== undefined &&
    values.redisMode !== 'single' &&
    values.redisUrl === null &&
    sharing === undefined
  ) {
    faults.push(`REDIS_URL: is required with REDIS_MODE=${values.redisMode}`);
  }
  return [...faults, ...redisFaults(values), ...signInFaults(values)];
}

/** Checks a well-formed Redis URL against the mode. */
function redisFaults({ redisMode, redisUrl: address }: Partial<Values>): readonly string[] {
  // There may be several sentinels, and the path is the name of their master.
  if (!address || redisMode === undefined || redisMode === 'sentinel') return [];
  const faults: string[] = [];
  if (redisMode === 'single' && address.nodes.length > 1)
    faults.push('REDIS_URL: must name one server with REDIS_MODE=single');
  if (redisMode === 'single' && address.masterName !== undefined)
    faults.push('REDIS_URL: must end with the port or the number of a database with REDIS_MODE=single');
  if (redisMode === 'cluster' && (address.masterName !== undefined || address.database !== 0))
    faults.push('REDIS_URL: must end with the port with REDIS_MODE=cluster, where there is only database 0');
  return faults;
}

function reasonToShare(values: Partial<Values>, environment: Environment): string | undefined {
  if (environment.NODE_ENV === 'production') return 'NODE_ENV=production';
  return values.workers !== undefined && values.workers > 1 ? 'WORKERS above 1' : undefined;
}
