import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { ImportedSecretsReader } from '../../../src/keys/cache/imported-secrets-reader.ts';
import type { ImportedSecrets } from '../../../src/keys/secrets/secret-repository.ts';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

const IMPORTS: ImportedSecrets = { version: 1, given: true, hashed: false };

/** A reader whose queries end when the test says so. */
function heldReader() {
  const queries: PromiseWithResolvers<ImportedSecrets>[] = [];
  const reader = new ImportedSecretsReader({
    importedSecrets: () => {
      const query = Promise.withResolvers<ImportedSecrets>();
      queries.push(query);
      return query.promise;
    },
  });
  return { reader, queries };
}

it('reads of imported secrets during a query share the next one, which follows it', async () => {
  const { reader, queries } = heldReader();
  const first = reader.next();
  await jest.advanceTimersByTimeAsync(10);
  const later = [reader.next(), reader.next()];
  expect(queries).toHaveLength(1);
  queries[0]?.resolve(IMPORTS);
  await first;
  expect(queries).toHaveLength(2);
  queries[1]?.resolve(IMPORTS);
  expect(await Promise.all(later)).toEqual([IMPORTS, IMPORTS]);
});

it('queries for imported secrets begin 10 ms apart at least', async () => {
  const { reader, queries } = heldReader();
  const first = reader.next();
  queries[0]?.resolve(IMPORTS);
  await first;
  void reader.next();
  await jest.advanceTimersByTimeAsync(9);
  expect(queries).toHaveLength(1);
  await jest.advanceTimersByTimeAsync(1);
  expect(queries).toHaveLength(2);
});
