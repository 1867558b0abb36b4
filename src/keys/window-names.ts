import { StoreUnavailable } from '../errors.ts';
import type { KeyRepository } from './key-repository.ts';

/** The windows of the plans that apply to keys, by the id of the key. Those of earlier plans expire. Rejects with `StoreUnavailable`. */
export async function windowNamesOf(
  keyIds: readonly string[],
  repository: Pick<KeyRepository, 'findSnapshotsOrErrors'>,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const names = new Map<string, readonly string[]>();
  if (keyIds.length === 0) return names;
  for (const [keyId, snapshot] of await repository.findSnapshotsOrErrors(keyIds)) {
    // A key can be deleted even if its default plan does not exist.
    if (snapshot instanceof StoreUnavailable) continue;
    if (snapshot instanceof Error) throw snapshot;
    names.set(keyId, snapshot.plan?.limits.all.map(({ windowName }) => windowName) ?? []);
  }
  return names;
}
