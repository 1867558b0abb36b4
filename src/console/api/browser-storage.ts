/** What the console needs of a storage of the browser. */
export type KeptValues = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/** A storage that keeps nothing where the browser blocks site data or has no room: it throws then. */
function forgiving(storage: () => Storage): KeptValues {
  const attempt = <Result>(call: (storage: Storage) => Result): Result | undefined => {
    try {
      return call(storage());
    } catch {
      // What is chosen lasts as long as the page.
      return undefined;
    }
  };
  return {
    getItem: (key) => attempt((kept) => kept.getItem(key)) ?? null,
    setItem: (key, value) => attempt((kept) => kept.setItem(key, value)),
    removeItem: (key) => attempt((kept) => kept.removeItem(key)),
  };
}

/** Lasts as long as the tab. */
export const tabStorage = forgiving(() => window.sessionStorage);
/** Lasts, for all tabs: never for a secret. */
export const siteStorage = forgiving(() => window.localStorage);
