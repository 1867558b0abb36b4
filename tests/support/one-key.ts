import type { ChangeContext } from '../../src/audit/change-context.ts';
import type { KeyChanges, KeyRepository, UpdatedKey, UpdateFailure } from '../../src/keys/key-repository.ts';

/** Updates a single key. */
export async function updateKey(
  keys: Pick<KeyRepository, 'updateAll'>,
  keyId: string,
  changes: KeyChanges,
  change: ChangeContext,
): Promise<UpdatedKey | UpdateFailure | undefined> {
  return (await keys.updateAll([keyId], changes, change)).get(keyId);
}

/** Deletes a single key. Resolves with whether there was one. */
export async function deleteKey(
  keys: Pick<KeyRepository, 'deleteAll'>,
  keyId: string,
  change: ChangeContext,
): Promise<boolean> {
  return (await keys.deleteAll([keyId], change)).has(keyId);
}
