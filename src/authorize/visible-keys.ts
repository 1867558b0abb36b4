import type { KeyEntry } from '../keys/cache/key-entry.ts';
import type { KeySource } from '../proxy/steps/authenticate.ts';

/** The keys that have all of these tags, as if there were no others. */
export function visibleKeys(keys: KeySource, onlyTags: readonly string[]): KeySource {
  const visible = (entry: KeyEntry | undefined): KeyEntry | undefined => {
    const tags = entry?.snapshot.owner?.tags ?? [];
    return onlyTags.every((tag) => tags.includes(tag)) ? entry : undefined;
  };
  return {
    find: (secret) => visible(keys.find(secret)),
    isUnchecked: (entry, atMs) => keys.isUnchecked(entry, atMs),
    confirm: (entry, confirmed) => keys.confirm(entry, (found, fresh) => confirmed(visible(found), fresh)),
    load: (secret, client, loaded) =>
      keys.load(secret, client, (error, entry, fresh) => loaded(error, visible(entry), fresh)),
    reload: (entry, reloaded) => keys.reload(entry, (error, found) => reloaded(error, visible(found))),
  };
}
