/** A part of the source that is mutated, with the tests that have to notice. */
export interface Area {
  readonly name: string;
  /** Patterns of source files. */
  readonly files: readonly string[];
  /** What Jest gets: the quickest tests come first where that is possible, because a run ends with the first failure. */
  readonly tests: readonly string[];
  /** The least share of mutants that the tests must kill. */
  readonly aim: number;
}

const MOST = 0.9;
const ALL = 1;

const LIMITER_TESTS = ['tests/limiter', 'tests/contracts/rate-limiter', 'tests/contracts/record-versions'];

/** All areas, in the order in which they are mutated. */
export const AREAS: readonly Area[] = [
  {
    name: 'decision scripts',
    files: ['src/storage/redis/{decisions,counters,changes}/*.lua'],
    tests: [
      'tests/storage/redis/change-scripts',
      'tests/storage/redis/window-scripts',
      'tests/storage/redis/decision-script',
      ...LIMITER_TESTS,
      'tests/contracts/limiter-model',
      'tests/storage/redis/decisions',
    ],
    aim: ALL,
  },
  {
    name: 'usage scripts',
    files: ['src/storage/redis/usage/*.lua'],
    tests: [
      'tests/storage/redis/usage-scripts',
      'tests/contracts/live-usage',
      'tests/usage/redis-rollback',
      'tests/usage/late-flusher',
    ],
    aim: ALL,
  },
  {
    name: 'decision',
    files: [
      'src/storage/redis/decisions/decision-{messages,calls}.ts',
      'src/limiter/guards/*.ts',
      'src/limiter/cost-settler.ts',
      'src/limiter/in-process/in-process-rate-limiter.ts',
    ],
    tests: [...LIMITER_TESTS, 'tests/storage/redis/decisions', 'tests/proxy/reported-costs'],
    aim: MOST,
  },
  {
    name: 'windows and limits',
    files: [
      'src/limiter/{period,request-limits,limit-overrides,customer-windows}.ts',
      'src/limiter/in-process/{window-table,in-process-window-counters}.ts',
    ],
    tests: [
      ...LIMITER_TESTS,
      'tests/plans',
      'tests/proxy/several-limits',
      'tests/proxy/keys-and-limits',
      'tests/management/plan-limits',
      'tests/management/key-limits',
    ],
    aim: MOST,
  },
  {
    name: 'authentication and key cache',
    files: ['src/keys/cache/*.ts', 'src/proxy/steps/authenticate.ts', 'src/keys/key-restrictions.ts'],
    tests: [
      'tests/keys/cache',
      'tests/proxy/judged-copies',
      'tests/proxy/keys-and-limits',
      'tests/proxy/allowed-addresses',
      'tests/proxy/allowed-origins',
      'tests/proxy/rejected-requests',
    ],
    aim: MOST,
  },
  {
    name: 'scopes and tags',
    files: [
      'src/permissions/{scopes,principal,visible-records}.ts',
      'src/admins/token-authenticator.ts',
      'src/management/{authentication,principal-of}.ts',
      'src/keys/key-tags.ts',
    ],
    tests: [
      'tests/admins',
      'tests/management/scopes',
      'tests/management/only-tags',
      'tests/management/admin-tokens',
      'tests/management/credentials',
      'tests/management/guesses',
      'tests/sign-in',
    ],
    aim: MOST,
  },
  {
    name: 'framing and connection reuse',
    files: [
      'src/backend/{response-parser,response-head,connection-reuse,connection}.ts',
      'src/backend/pool/*.ts',
    ],
    tests: [
      'tests/backend',
      'tests/proxy/backend-responses',
      'tests/proxy/backend-connections',
      'tests/proxy/backend-shares',
      'tests/proxy/upgrades',
    ],
    aim: MOST,
  },
  {
    name: 'usage flush',
    files: [
      'src/usage/usage-flusher.ts',
      'src/usage/live-usage-writer.ts',
      'src/storage/redis/usage/redis-live-usage.ts',
    ],
    tests: [
      'tests/usage',
      'tests/contracts/live-usage',
      'tests/contracts/usage.test',
      'tests/storage/redis/usage-calls',
    ],
    aim: MOST,
  },
  {
    name: 'audit',
    files: ['src/audit/*.ts', 'src/storage/postgres/audit/*.ts'],
    tests: ['tests/contracts/audit', 'tests/management/audit-log'],
    aim: MOST,
  },
  {
    name: 'events',
    files: ['src/events/*.ts', 'src/events/{delivery,stream}/*.ts'],
    tests: [
      'tests/events',
      'tests/management/webhooks',
      'tests/management/configured-webhooks',
      'tests/management/event-stream',
    ],
    aim: MOST,
  },
  {
    name: 'idempotency',
    files: [
      'src/idempotency/idempotent-requests.ts',
      'src/management/idempotency.ts',
      'src/storage/postgres/postgres-response-store.ts',
    ],
    tests: ['tests/contracts/response-store', 'tests/management/idempotency', 'tests/gateway/self-service'],
    aim: MOST,
  },
  {
    name: 'pagination cursors',
    files: ['src/management/{page-cursor,page-query}.ts', 'src/storage/postgres/keys/postgres-key-list.ts'],
    tests: [
      'tests/management/key-list',
      'tests/management/plan-list',
      'tests/management/audit-log',
      'tests/contracts/key-list',
      'tests/storage/key-search-index',
    ],
    aim: MOST,
  },
  {
    name: 'import and configuration',
    files: [
      'src/keys/{key-imports,window-names}.ts',
      'src/storage/postgres/keys/write-imported-keys.ts',
      'src/desired-state/{changes-of-difference,desired-state-service,difference,new-managed-keys}.ts',
    ],
    tests: [
      'tests/desired-state',
      'tests/management/key-imports',
      'tests/management/configuration.test',
      'tests/management/configured-webhooks',
      'tests/management/only-tags',
      'tests/contracts/secret-repository',
    ],
    aim: MOST,
  },
];
