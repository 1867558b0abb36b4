import { findPostgres, findRedis, type TestStore } from './test-stores.ts';

declare global {
  /** Jest gives a run's setup and teardown nothing in common but the process. */
  var tollgateTestStores: TestStore[] | undefined;
}

/** Finds or starts the stores of this run and tells the workers of them through the environment. */
export default async function setUp(): Promise<void> {
  const found = await Promise.allSettled([findRedis(), findPostgres()]);
  globalThis.tollgateTestStores = found.flatMap((store) =>
    store.status === 'fulfilled' ? [store.value] : [],
  );
  const [redis, postgres] = found;
  if (redis.status === 'rejected' || postgres.status === 'rejected') {
    await Promise.allSettled(globalThis.tollgateTestStores.map((store) => store.stop()));
    throw redis.status === 'rejected' ? redis.reason : (postgres as PromiseRejectedResult).reason;
  }
  process.env.TEST_REDIS_URL = redis.value.url;
  process.env.TEST_DATABASE_URL = postgres.value.url;
}
