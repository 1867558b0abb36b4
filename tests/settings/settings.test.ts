import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { InvalidSettings, maskedSettings, readSettings, SETTINGS } from '../../src/settings/settings.ts';

const ROOT_TOKEN = 'root-token-of-at-least-32-characters';
const ENCRYPTION_KEY = Buffer.alloc(32, 7).toString('base64');
const minimal = { BACKEND_URL: 'http://backend:3000' };
const complete = {
  ...minimal,
  NODE_ENV: 'production',
  ROOT_TOKEN,
  ENCRYPTION_KEY,
  DATABASE_URL: 'postgres://tollgate:pg-password@db/tollgate',
  REDIS_URL: 'redis://:redis-password@cache:6379',
};

const GUIDE = readFileSync(new URL('../../docs/settings.md', import.meta.url), 'utf8');
const [, FORMS_TABLE = ''] = /^\| form \| variables \|.*\n\|.*\n((?:\|.*\n)+)/m.exec(GUIDE) ?? [];
/** The rows of the table of forms. */
const FORMS = FORMS_TABLE.trim()
  .split('\n')
  .map((row) => {
    const [variables = [], accepted = [], rejected = []] = row
      .split(' | ')
      .slice(1)
      .map((cell) => [...cell.matchAll(/`([^`]*)`/g)].map(([, value = '']) => value));
    return { variables, accepted, rejected };
  });
/** Settings whose row in the table of settings says what they may be. */
const OF_OTHER_FORMS = [
  ...['BACKEND_URL', 'ROOT_TOKEN', 'ENCRYPTION_KEY', 'DATABASE_URL', 'REDIS_URL', 'HOST', 'OPS_HOST'],
  ...['AUTHORIZE_HOST', 'AUTHORIZE_TOKEN', 'DATA_DIR', 'DEFAULT_PLAN_ID', 'CUSTOMER_ID_HEADER', 'KEY_PREFIX'],
  ...[
    'SELF_SERVICE_PATH',
    'PUBLIC_URL',
    'PUBLIC_ADMIN_URL',
    'PORTAL_NAME',
    'PORTAL_LOGO_FILE',
    'PORTAL_COLOR',
  ],
  ...['PORTAL_DOCS_URL', 'PORTAL_SUPPORT_URL', 'OIDC_ISSUER', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET'],
  ...['OIDC_SCOPES_MAP', 'OIDC_SCOPES_CLAIM', 'OIDC_SCOPES', 'OIDC_AUDIENCE', 'CONFIG_FILE', 'CONFIG_OWNER'],
  'EVENTS_SOURCE',
];

function faultsOf(environment: Record<string, string>): readonly string[] {
  try {
    readSettings(environment);
  } catch (error) {
    if (error instanceof InvalidSettings) return error.faults;
    throw error;
  }
  return [];
}

describe('settings', () => {
  it('need nothing but a backend on one machine', () => {
    expect(readSettings(minimal)).toMatchObject({
      host: '127.0.0.1',
      port: 8080,
      adminPort: null,
      opsHost: '127.0.0.1',
      opsPort: 9090,
      dataDir: './data',
      autoMigrate: true,
      defaultPlanId: 'default',
      customerIdHeader: 'x-customer-id',
      keyPrefix: 'tg',
      console: 'on',
      limiterFailureMode: 'local',
      redisTimeoutMs: 200,
      backendTimeoutMs: 30_000,
      backendConnections: 256,
      backendConnectionsPerKey: 128,
      upgradesPerKey: 1024,
      backendIdleMs: 30_000,
      keepAliveMs: 65_000,
      requestBodyMinBytesPerSecond: 256,
      responseBodyMinBytesPerSecond: 256,
      usageRetentionDays: 90,
      shutdownDelayMs: 0,
      shutdownDrainMs: 25_000,
      workers: 1,
      accessLog: 1,
      metricsPerKey: 0,
      tracing: null,
      logLevel: 'info',
    });
  });

  it('are frozen', () => {
    expect(Object.isFrozen(readSettings(minimal))).toBe(true);
  });

  it.each([
    ['BACKEND_URL', 'ftp://x'],
    ['BACKEND_URL', 'http://user:pw@x'],
    ['BACKEND_URL', 'http://x/?q=1'],
    ['BACKEND_URL', ''],
    ['ROOT_TOKEN', 'short'],
    ['ROOT_TOKEN', `${ROOT_TOKEN},short`],
    ['ROOT_TOKEN', 'a token with blanks that is long enough'],
    ['ROOT_TOKEN', ','],
    ['ROOT_TOKEN', 'x'.repeat(31)],
    ['ENCRYPTION_KEY', ' , '],
    ['TRUSTED_PROXIES', ',,'],
    ['CORS_ALLOWED_ORIGINS', ' ,'],
    ['ENCRYPTION_KEY', 'AAAA'],
    ['ENCRYPTION_KEY', '!'.repeat(44)],
    ['DATABASE_URL', 'mysql://db'],
    ['REDIS_URL', 'http://cache'],
    ['REDIS_MODE', 'twin'],
    ['HOST', 'no host'],
    ['PORT', '65536'],
    ['PORT', '80a'],
    ['ADMIN_PORT', '-1'],
    ['AUTHORIZE_PORT', '70000'],
    ['AUTHORIZE_HOST', 'no host'],
    ['AUTHORIZE_TOKEN', 'short'],
    ['AUTHORIZE_TOKEN', 'long enough, but with a blank'],
    ['OPS_PORT', 'x'],
    ['AUTO_MIGRATE', 'yes'],
    ['DEFAULT_PLAN_ID', '-x'],
    ['DEFAULT_PLAN_ID', 'create'],
    ['CUSTOMER_ID_HEADER', 'Authorization'],
    ['CUSTOMER_ID_HEADER', 'x_customer'],
    ['KEY_PREFIX', 'with_underscore'],
    ['KEY_PREFIX', 'tga'],
    ['KEY_PREFIX', 'tgh'],
    ['KEY_PREFIX', 'tgs'],
    ['KEY_PREFIX', 'whsec'],
    ['SECRET_REVEAL', 'never'],
    ['FORWARD_AUTHORIZATION', '1'],
    ['TRUSTED_PROXIES', '10.0.0.0/33'],
    ['TRUSTED_PROXIES', 'loadbalancer'],
    ['CORS_ALLOWED_ORIGINS', 'shop.example.org'],
    ['CORS_ALLOWED_ORIGINS', 'https://app.example.com/'],
    ['CONSOLE', 'true'],
    ['CONSOLE', 'dev/console'],
    ['PORTAL', 'true'],
    ['PORTAL_NAME', 'a'.repeat(81)],
    ['PORTAL_NAME', 'a\u202eb'],
    ['PORTAL_DOCS_URL', 'docs.example.com'],
    ['PORTAL_DOCS_URL', 'javascript:alert(1)'],
    ['PORTAL_DOCS_URL', 'mailto:help@example.com'],
    ['PORTAL_DOCS_URL', 'https://user:password@docs.example.com'],
    ['PORTAL_SUPPORT_URL', 'data:text/html,hello'],
    ['PORTAL_COLOR', 'red'],
    ['PORTAL_COLOR', '#fff'],
    ['EVENTS_THRESHOLDS', '0'],
    ['EVENTS_THRESHOLDS', '80,101'],
    ['EVENTS_THRESHOLDS', '80,80'],
    ['EVENTS_THRESHOLDS', '1,2,3,4,5,6'],
    ['EVENTS_THRESHOLDS', '80%'],
    ['SELF_SERVICE_PATH', 'me'],
    ['SELF_SERVICE_PATH', '/'],
    ['SELF_SERVICE_PATH', '/account/'],
    ['SELF_SERVICE_PATH', '/a//b'],
    ['SELF_SERVICE_PATH', '/a/../b'],
    ['SELF_SERVICE_PATH', '/a%20b'],
    ['SELF_SERVICE_PATH', '/tollgate'],
    ['SELF_SERVICE_PATH', '/tollgate/whoami'],
    ['SELF_SERVICE_PATH', '/tollgate/self/too'],
    ['SELF_SERVICE_PATH', '/rate-limit/mine'],
    ['SELF_SERVICE_PATH', `/${'a'.repeat(128)}`],
    ['LIMITER_FAILURE_MODE', 'maybe'],
    ['REDIS_TIMEOUT_MS', '0'],
    ['BACKEND_TIMEOUT_MS', '1.5'],
    ['BACKEND_CONNECTIONS', '0'],
    ['BACKEND_CONNECTIONS_PER_KEY', '0'],
    ['UPGRADES_PER_KEY', 'none'],
    ['BACKEND_IDLE_MS', '0'],
    ['BACKEND_IDLE_MS', '3600001'],
    ['KEEP_ALIVE_MS', '14999'],
    ['KEEP_ALIVE_MS', '65s'],
    ['REQUEST_BODY_MIN_BYTES_PER_SECOND', '-1'],
    ['RESPONSE_BODY_MIN_BYTES_PER_SECOND', 'slow'],
    ['ENDPOINT_PATTERNS', 'users/{id}'],
    ['USAGE_RETENTION_DAYS', 'ninety'],
    ['SHUTDOWN_DELAY_MS', '-5'],
    ['SHUTDOWN_DRAIN_MS', '1e3'],
    ['WORKERS', '0'],
    ['ACCESS_LOG', 'some'],
    ['ACCESS_LOG', '1.5'],
    ['METRICS_PER_KEY', 'top:0'],
    ['METRICS_PER_KEY', 'all keys'],
    ['LOG_LEVEL', 'verbose'],
    ['PUBLIC_ADMIN_URL', 'http://admin.example.com'],
    ['PUBLIC_ADMIN_URL', 'https://admin.example.com/console'],
    ['ROOT_TOKEN_SIGN_IN', 'sometimes'],
    ['OIDC_ISSUER', 'http://login.example.com'],
    ['OIDC_ISSUER', 'https://user:word@login.example.com'],
    ['OIDC_ISSUER', 'https://login.example.com/?tenant=1'],
    ['OIDC_ISSUER', 'https://login.microsoftonline.com/common/v2.0'],
    ['OIDC_SCOPES', 'profile email'],
    ['OIDC_SCOPES', 'openid  email'],
    ['OIDC_SCOPES_MAP', '{"admins": ["everything"]}'],
    ['OIDC_SCOPES_MAP', '["admins"]'],
    ['OIDC_SESSION_HOURS', '25'],
  ])('reject %s=%s with one sentence that names the variable and not the value', (variable, value) => {
    const faults = faultsOf({ ...minimal, ROOT_TOKEN, ENCRYPTION_KEY, [variable]: value });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(new RegExp(`^${variable}: `));
    if (value.length > 4) expect(faults[0]).not.toContain(value);
  });

  it('of sign-in are needed together, and say which are missing', () => {
    const signIn = {
      ...{ OIDC_ISSUER: 'https://login.example.com', OIDC_CLIENT_ID: 'tollgate' },
      ...{ OIDC_SCOPES_MAP: '{"admins": ["all"]}', PUBLIC_ADMIN_URL: 'https://admin.example.com' },
    };
    expect(faultsOf({ ...complete, ...signIn })).toEqual([]);
    for (const name of ['OIDC_CLIENT_ID', 'OIDC_SCOPES_MAP', 'PUBLIC_ADMIN_URL'] as const) {
      const { [name]: _, ...others } = signIn;
      expect(faultsOf({ ...complete, ...others })).toEqual([`${name}: is required with OIDC_ISSUER`]);
    }
    expect(faultsOf({ ...complete, OIDC_AUDIENCE: 'x' })).toEqual([
      'OIDC_ISSUER: is required with OIDC_AUDIENCE',
    ]);
    // An ID token of a person would be an access token.
    expect(faultsOf({ ...complete, ...signIn, OIDC_AUDIENCE: 'tollgate' })).toEqual([
      expect.stringMatching(/^OIDC_AUDIENCE: must differ from OIDC_CLIENT_ID/),
    ]);
    const secret = { OIDC_CLIENT_SECRET: 'a-secret-of-the-client' };
    expect(JSON.stringify(maskedSettings(readSettings({ ...complete, ...signIn, ...secret })))).not.toContain(
      secret.OIDC_CLIENT_SECRET,
    );
  });

  it('need no backend where other gateways ask for decisions', () => {
    expect(readSettings({ AUTHORIZE_PORT: '8082', HOST: '10.0.0.1' })).toMatchObject({
      ...{ backendUrl: null, authorizePort: 8082, authorizeHost: '10.0.0.1', authorizeTokens: [] },
    });
  });

  it('list all their faults at once', () => {
    const faults = faultsOf({ NODE_ENV: 'production', PORT: 'x', WORKERS: '0', LOG_LEVEL: 'loud' });
    expect(faults.map((fault) => fault.split(':')[0])).toEqual([
      'BACKEND_URL',
      'PORT',
      'WORKERS',
      'LOG_LEVEL',
      'DATABASE_URL',
      'REDIS_URL',
      'ROOT_TOKEN',
      'ENCRYPTION_KEY',
    ]);
  });

  it('demand shared stores and secrets in production and for several workers', () => {
    expect(faultsOf({ ...minimal, WORKERS: '2' })).toHaveLength(4);
    expect(faultsOf({ ...minimal, NODE_ENV: 'production' })).toHaveLength(4);
    expect(faultsOf(complete)).toEqual([]);
  });

  it.each([
    ['cluster', 'redis://a:7000,b:7000'],
    ['cluster', 'redis://a:1,redis://b:2'],
    ['sentinel', 'redis://a:26379,b:26379'],
    ['sentinel', 'rediss://user:word@a:26379, b:26379/mymaster?db=1'],
  ])('take several nodes for a %s of Redis, of which the first speaks for all: %s', (mode, url) => {
    expect(faultsOf({ ...complete, REDIS_MODE: mode, REDIS_URL: url })).toEqual([]);
  });

  it.each(['redis://a:7000,http://b:7000', 'a:7000,b:7000', 'redis://a:7000,'])(
    'reject the nodes %s',
    (url) => {
      expect(faultsOf({ ...complete, REDIS_MODE: 'cluster', REDIS_URL: url })).toHaveLength(1);
    },
  );

  it.each([
    'redis://:pw%zz@cache:6379',
    'redis://user%:pw@cache',
    'redis://cache/%ff',
    'redis://a:1,redis://b:2',
    'redis://a:1,b:2',
    'redis://cache:6379/notadb',
    'redis://cache:6379/1/2',
    'redis://cache:6379/123456',
    'redis://cache:6379?db=first',
  ])('reject as the one server of Redis %s', (REDIS_URL) => {
    const faults = faultsOf({ ...complete, REDIS_URL });
    expect(faults).toEqual([expect.stringMatching(/^REDIS_URL: must /)]);
    expect(faults.join()).not.toContain(REDIS_URL.slice('redis://'.length));
  });

  it.each([
    'redis://cache',
    'redis://cache/',
    'redis://:p%25w@cache:6379/15',
    'rediss://cache?db=3',
    'redis://[::1]:6379/0',
  ])('take as the one server of Redis %s', (REDIS_URL) => {
    expect(faultsOf({ ...complete, REDIS_URL })).toEqual([]);
  });

  it.each(['/mymaster', '/2', '?db=2'])('reject for a cluster of Redis %s after the nodes', (end) => {
    const nodes = { ...complete, REDIS_MODE: 'cluster', REDIS_URL: 'redis://a:7000,b:7000' };
    expect(faultsOf({ ...nodes, REDIS_URL: nodes.REDIS_URL + end })).toEqual([
      'REDIS_URL: must end with the port with REDIS_MODE=cluster, where there is only database 0',
    ]);
    expect([...faultsOf(nodes), ...faultsOf({ ...nodes, REDIS_URL: `${nodes.REDIS_URL}/0` })]).toEqual([]);
  });

  it.each([
    'postgres://u:p@127.0.0.1:1,127.0.0.2:2/x',
    'postgres://u:p@a,b/x',
    'postgres://u:p@a/x?host=a,b',
  ])('reject as the one server of Postgres %s', (DATABASE_URL) => {
    const faults = faultsOf({ ...complete, DATABASE_URL });
    expect(faults).toEqual([expect.stringMatching(/^DATABASE_URL: must /)]);
    expect(faults.join()).not.toContain(DATABASE_URL.slice('postgres://'.length));
  });

  it.each([
    'postgres://u:p%ff@a/x',
    // One percent sign begins no escape, and the others are none that can be decoded.
    'postgres://u:%zz%80@a/x',
    'postgres://u%c3:%a9@a/x',
    'postgres://u:p@a/%ff',
  ])('name the escapes of Postgres at %s as the fault', (DATABASE_URL) => {
    expect(faultsOf({ ...complete, DATABASE_URL })).toEqual([
      'DATABASE_URL: must be percent-encoded properly: write a percent sign itself as %25',
    ]);
  });

  it.each([
    'postgres://u:p,w@db/x',
    'postgres://u:p%zz@db/x',
    'postgresql://u@[::1]:5432/x?sslmode=verify-full',
  ])('take as the one server of Postgres %s', (DATABASE_URL) => {
    expect(faultsOf({ ...complete, DATABASE_URL })).toEqual([]);
  });

  it.each(['sslrootcert', 'sslcert', 'sslkey'])('demand that the file of %s can be read', (name) => {
    for (const [file, code] of [
      ['/no/such/file.pem', 'ENOENT'],
      [tmpdir(), 'EISDIR'],
    ]) {
      expect(faultsOf({ ...complete, DATABASE_URL: `${complete.DATABASE_URL}?${name}=${file}` })).toEqual([
        `DATABASE_URL: the file of ${name} can not be read (${code})`,
      ]);
    }
  });

  it('demand an authority with verify-ca', () => {
    const DATABASE_URL = `${complete.DATABASE_URL}?uselibpqcompat=true&sslmode=verify-ca`;
    expect(faultsOf({ ...complete, DATABASE_URL })).toEqual([
      'DATABASE_URL: must name the file of an authority as sslrootcert with sslmode=verify-ca',
    ]);
  });

  it('demand both secrets where the records outlive the machine', () => {
    const required = ['ROOT_TOKEN', 'ENCRYPTION_KEY'].map((name) => `${name}: is required with DATABASE_URL`);
    expect(faultsOf({ ...minimal, DATABASE_URL: complete.DATABASE_URL })).toEqual(required);
    expect(faultsOf({ ...minimal, DATABASE_URL: 'bad' })).toEqual([
      expect.stringMatching(/^DATABASE_URL: /),
      ...required,
    ]);
  });

  it('without DATABASE_URL listen for this machine only, unless HOST says otherwise', () => {
    expect(readSettings({ ...minimal, HOST: '0.0.0.0' })).toMatchObject({
      host: '0.0.0.0',
      opsHost: '0.0.0.0',
    });
    expect(readSettings(complete)).toMatchObject({ host: '0.0.0.0', opsHost: '0.0.0.0' });
    expect(readSettings({ ...complete, HOST: '10.0.0.1', OPS_HOST: '::1' })).toMatchObject({
      host: '10.0.0.1',
      opsHost: '::1',
    });
  });

  it('in production give load balancers three seconds to notice a shutdown', () => {
    expect(readSettings(complete).shutdownDelayMs).toBe(3000);
    expect(readSettings({ ...complete, SHUTDOWN_DELAY_MS: '0' }).shutdownDelayMs).toBe(0);
  });

  it.each([
    ['DATABSE_URL', 'DATABASE_URL'],
    ['DATABASE_URI', 'DATABASE_URL'],
    ['BACKND_URL_', 'BACKEND_URL'],
    ['ROOT_TOKENS', 'ROOT_TOKEN'],
    ['ROOT_TOKN_FILE', 'ROOT_TOKEN_FILE'],
    ['root_token', 'ROOT_TOKEN'],
    ['LOGLEVEL', 'LOG_LEVEL'],
    ['WOKRERS', 'WORKERS'],
    ['BACKEND_TIMEOUT', 'BACKEND_TIMEOUT_MS'],
    ['USAGE_RETENTION', 'USAGE_RETENTION_DAYS'],
    ['BACKEND_CONNECTIONS_MS', 'BACKEND_CONNECTIONS'],
    // Only secrets and patterns can be in files.
    ['LIMITER_FAILURE_MODE_FILE', 'LIMITER_FAILURE_MODE'],
    ['TRUSTED_PROXIES_FILE', 'TRUSTED_PROXIES'],
  ])('take %s for a misspelt %s', (variable, meant) => {
    const { BACKEND_URL } = minimal;
    const backend = meant === 'BACKEND_URL' ? {} : { BACKEND_URL };
    expect(faultsOf({ ...backend, [variable]: 'value' })).toContain(
      `${variable}: is no setting; did you mean ${meant}?`,
    );
  });

  it('leave the variables of other programs alone', () => {
    const others =
      'HOSTNAME PORT_FILE HOST_FILE PATH PWD HOME SHOST PORTS SPORT TZ LANG USER NODE_ENV NODE_OPTIONS WORKER_ID REDIS_HOST DATABASE_NAME'
        .split(' ')
        .concat('TOLLGATE_PORT', 'KUBERNETES_PORT', 'npm_config_prefix', 'LOG_FORMAT', 'DATA_HOME');
    expect(faultsOf({ ...minimal, ...Object.fromEntries(others.map((name) => [name, 'value'])) })).toEqual(
      [],
    );
    // Near a setting that is set: a variable of another program, or a leftover.
    expect(faultsOf({ ...complete, DATABASE_URI: 'value', REDIS_URI: 'value' })).toEqual([]);
  });

  it('have no portal without self-service, and none by default', () => {
    expect(readSettings(minimal)).toMatchObject({
      portal: 'off',
      portalName: 'API portal',
      portalColor: null,
    });
    const brand = { PORTAL_COLOR: '#4F46E5', PORTAL_SUPPORT_URL: 'mailto:help@example.com' };
    expect(readSettings({ ...minimal, PORTAL: 'on', ...brand })).toMatchObject({
      ...{ portalColor: '#4f46e5', portalSupportUrl: 'mailto:help@example.com' },
    });
    expect(faultsOf({ ...minimal, PORTAL: 'on', SELF_SERVICE_PATH: '' })).toEqual([
      'PORTAL: needs self-service, so SELF_SERVICE_PATH must not be empty',
    ]);
  });

  it('take the CONSOLE of an init system for none', () => {
    for (const device of ['/dev/console', '/dev/tty1', '/dev/pts/0'])
      expect(readSettings({ ...minimal, CONSOLE: device }).console).toBe('on');
    expect(readSettings({ ...minimal, CONSOLE: 'off' }).console).toBe('off');
  });

  it('do not migrate by themselves in production', () => {
    expect(readSettings(complete).autoMigrate).toBe(false);
    expect(readSettings({ ...complete, AUTO_MIGRATE: 'true' }).autoMigrate).toBe(true);
  });

  it('reject ports that collide', () => {
    expect(faultsOf({ ...minimal, PORT: '8080', ADMIN_PORT: '8080' })).toEqual([
      'PORT, ADMIN_PORT, AUTHORIZE_PORT, OPS_PORT: must differ from each other',
    ]);
  });

  it('take an empty DEFAULT_PLAN_ID as no limit', () => {
    expect(readSettings({ ...minimal, DEFAULT_PLAN_ID: '' }).defaultPlanId).toBeNull();
  });

  it('take a part of the requests for the access log, and a number of keys for metrics', () => {
    const read = (ACCESS_LOG: string) => readSettings({ ...minimal, ACCESS_LOG }).accessLog;
    expect(['off', 'all', '0.01', '.5', '1', '0'].map(read)).toEqual([0, 1, 0.01, 0.5, 1, 0]);
    expect(readSettings({ ...minimal, METRICS_PER_KEY: 'top:20' }).metricsPerKey).toBe(20);
  });

  it('switch traces on by the variables of OpenTelemetry, and off again', () => {
    const traced = { ...minimal, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };
    expect(readSettings(traced).tracing).toEqual({
      protocol: 'http/protobuf',
      sampler: 'always_on',
      isParentBased: true,
      ratio: 1,
      batches: {},
    });
    expect(readSettings({ ...minimal, OTEL_TRACES_EXPORTER: 'otlp' }).tracing).not.toBeNull();
    expect(readSettings({ ...minimal, OTEL_SERVICE_NAME: 'gateway' }).tracing).toBeNull();
    expect(readSettings({ ...traced, OTEL_SDK_DISABLED: 'true' }).tracing).toBeNull();
    expect(readSettings({ ...traced, OTEL_TRACES_EXPORTER: 'none' }).tracing).toBeNull();
    const sampled = {
      ...traced,
      OTEL_TRACES_SAMPLER: 'traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.25',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_ENDPOINT: '10.0.0.5:4317',
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318/v1/traces',
      OTEL_BSP_SCHEDULE_DELAY: '100',
    };
    expect(readSettings(sampled).tracing).toEqual({
      protocol: 'http/json',
      sampler: 'traceidratio',
      isParentBased: false,
      ratio: 0.25,
      batches: { scheduledDelayMillis: 100 },
    });
  });

  it.each([
    ['OTEL_TRACES_EXPORTER', 'zipkin'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', '127.0.0.1:4318'],
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'grpc://collector:4317'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
    ['OTEL_TRACES_SAMPLER', 'jaeger_remote'],
    ['OTEL_TRACES_SAMPLER_ARG', '2.5'],
    ['OTEL_BSP_MAX_QUEUE_SIZE', 'many'],
  ])('reject %s=%s only while traces are on', (variable, value) => {
    const traced = { ...minimal, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', [variable]: value };
    expect(faultsOf(traced)).toEqual([expect.stringMatching(new RegExp(`^${variable}: must be `))]);
    expect(faultsOf({ ...traced, OTEL_SDK_DISABLED: 'true' })).toEqual([]);
  });

  it('read secrets from files, without the final line break', () => {
    const file = join(mkdtempSync(join(tmpdir(), 'settings-')), 'root-token');
    writeFileSync(file, `${ROOT_TOKEN}\n`);
    expect(readSettings({ ...minimal, ROOT_TOKEN_FILE: file }).rootTokens).toEqual([ROOT_TOKEN]);
    expect(faultsOf({ ...minimal, ROOT_TOKEN, ROOT_TOKEN_FILE: file })).toEqual([
      'ROOT_TOKEN: is set both directly and by ROOT_TOKEN_FILE; keep one',
    ]);
    const { ROOT_TOKEN: _, ...rest } = complete;
    expect(faultsOf({ ...rest, ROOT_TOKEN, ROOT_TOKEN_FILE: file })).toHaveLength(1);
    expect(faultsOf({ ...minimal, ROOT_TOKEN_FILE: `${file}-missing` })).toEqual([
      'ROOT_TOKEN_FILE: the file can not be read (ENOENT)',
    ]);
  });

  it('take several root tokens and encryption keys', () => {
    const settings = readSettings({
      ...complete,
      ROOT_TOKEN: `${ROOT_TOKEN}, ${ROOT_TOKEN}2`,
      ENCRYPTION_KEY: `${ENCRYPTION_KEY},${ENCRYPTION_KEY}`,
    });
    expect(settings.rootTokens).toEqual([ROOT_TOKEN, `${ROOT_TOKEN}2`]);
    expect(settings.encryptionKeys).toHaveLength(2);
  });

  it('take a root token of any 32 characters that fit in a Bearer header', () => {
    const token = 'x'.repeat(32);
    expect(readSettings({ ...complete, ROOT_TOKEN: token }).rootTokens).toEqual([token]);
  });

  it('are shown with every secret masked', () => {
    const shown = JSON.stringify(maskedSettings(readSettings(complete)));
    for (const secret of [ROOT_TOKEN, ENCRYPTION_KEY, 'pg-password', 'redis-password'])
      expect(shown).not.toContain(secret);
    expect(shown).toContain('"BACKEND_URL":"http://backend:3000/"');
  });

  it('are shown with what a person is granted', () => {
    const signIn = {
      ...{ PUBLIC_ADMIN_URL: 'https://admin.example.com', OIDC_ISSUER: 'https://login.example.com' },
      ...{
        OIDC_CLIENT_ID: 'tollgate',
        OIDC_SCOPES_MAP: '{"team-a": {"scopes": ["keys:read"], "onlyTags": ["a"]}}',
      },
    };
    const shown = JSON.stringify(maskedSettings(readSettings({ ...complete, ...signIn })));
    expect(shown).toContain('"OIDC_SCOPES_MAP":{"team-a":{"scopes":["keys:read"],"onlyTags":["a"]}}');
  });

  it('have the forms that docs/settings.md lists, and reject what it says they reject', () => {
    const needed = { ...minimal, WORKERS: '', OPS_PORT: '9999' };
    expect(FORMS.length).toBeGreaterThan(15);
    for (const { variables, accepted, rejected } of FORMS) {
      for (const variable of variables) {
        const faults = (value: string) =>
          faultsOf({
            ...(variable === 'WORKERS' || variable === 'REDIS_MODE' ? complete : needed),
            [variable]: value,
          }).filter((sentence) => sentence.startsWith(`${variable}:`));
        for (const value of accepted) expect([variable, value, faults(value)]).toEqual([variable, value, []]);
        for (const value of rejected)
          expect([variable, value, faults(value)]).toEqual([
            variable,
            value,
            [expect.stringMatching(/^[A-Z_]+: \S+ .*[a-z]/)],
          ]);
      }
    }
  });

  it('have each a form in docs/settings.md, but for texts, addresses, secrets and files', () => {
    const formed = FORMS.flatMap(({ variables }) => variables);
    expect(formed.concat(OF_OTHER_FORMS).toSorted()).toEqual(
      Object.values(SETTINGS)
        .map(({ variable }) => variable)
        .toSorted(),
    );
  });

  it('are each described in docs/settings.md', () => {
    const rows = [...GUIDE.matchAll(/^\| `([A-Z_]+)` \|/gm)].map((match) => match[1]);
    expect(rows.toSorted()).toEqual(
      Object.values(SETTINGS)
        .map((row) => row.variable)
        .toSorted(),
    );
  });
});
