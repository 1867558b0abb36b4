import { BUNDLED_MAIN, bundleGateway } from './bundled-gateway.ts';
import { COMPILED_DIRECTORY } from './gateway.ts';
import { requireProgramsOfTests } from './missing-programs.ts';
import { neededStores, textsOfTests } from './needed-stores.ts';
import {
  findPostgres,
  findRedis,
  makeEmbeddedPostgres,
  makeMigratedDatabase,
  type TestStore,
} from './test-stores.ts';

declare global {
  /** Jest gives a run's setup and teardown nothing in common but the process. */
  var tollgateTestStores: TestStore[] | undefined;
}

/** What this setup reads of Jest's configuration. */
interface RunConfig {
  readonly testPathPatterns: { readonly patterns: readonly string[] };
}

/** Finds or starts the stores that the chosen test files use, and names them to Jest's workers through the environment. */
export default async function setUp({ testPathPatterns }: RunConfig): Promise<void> {
  await requireProgramsOfTests(testPathPatterns.patterns);
  // For every script that a test runs: half the CPU time of its start.
  process.env.NODE_COMPILE_CACHE ??= COMPILED_DIRECTORY;
  if (textsOfTests(testPathPatterns.patterns).some((text) => /\bstartGateway\b/.test(text))) {
    await bundleGateway();
    process.env.TEST_GATEWAY_MAIN = BUNDLED_MAIN;
  }
  const needed = neededStores(testPathPatterns.patterns);
  const postgres = needed.postgres ? findPostgres() : undefined;
  const stores = {
    TEST_REDIS_URL: needed.redis ? findRedis() : undefined,
    TEST_DATABASE_URL: postgres,
    TEST_DATABASE_TEMPLATE: given('TEST_DATABASE_TEMPLATE') ?? postgres?.then(makeMigratedDatabase),
    TEST_EMBEDDED_POSTGRES:
      given('TEST_EMBEDDED_POSTGRES') ?? (needed.embedded ? makeEmbeddedPostgres() : undefined),
  };
  const found = await Promise.allSettled(Object.values(stores));
  globalThis.tollgateTestStores = found.flatMap((store) =>
    store.status === 'fulfilled' && store.value !== undefined ? [store.value] : [],
  );
  const failed = found.find((store) => store.status === 'rejected');
  if (failed !== undefined) {
    await stopTestStores();
    throw failed.reason;
  }
  for (const [name, store] of Object.entries(stores)) {
    if (store !== undefined) process.env[name] = (await store).url;
  }
}

/** A store that runs one after the other share, made before the first. */
function given(name: string): Promise<TestStore> | undefined {
  const url = process.env[name];
  return url === undefined ? undefined : Promise.resolve({ url, stop: async () => {} });
}

/** Ends what was started for this run, and nothing else: the last one first, because a database goes before its server. */
export async function stopTestStores(): Promise<void> {
  for (const store of (globalThis.tollgateTestStores ?? []).toReversed()) await store.stop();
}
