/** A value to hand out, and the fields of it that were not read so far. */
export interface WatchedValue {
  readonly value: unknown;
  /** Paths like `spec/replicas`, in no particular order. */
  unread(): readonly string[];
}

/**
 * Watches which fields of a JSON value are read. The validators that ship with the Kubernetes schemas look only at the fields that they know and
 * let all others pass, as the API server does; a field that a validator has not looked at is one that it does not know: a typing error.
 */
export function watchReads(root: unknown): WatchedValue {
  const unread = new Set<string>();
  return { value: watch(root, '', unread), unread: () => [...unread] };
}

function watch(value: unknown, path: string, unread: Set<string>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const pathOf = (key: string) => (path === '' ? key : `${path}/${key}`);
  const children = new Map<string, unknown>();
  for (const [key, child] of Object.entries(value)) {
    unread.add(pathOf(key));
    children.set(key, watch(child, pathOf(key), unread));
  }
  return new Proxy(value, {
    get(target, key, receiver) {
      if (typeof key === 'string' && children.has(key)) {
        unread.delete(pathOf(key));
        return children.get(key);
      }
      return Reflect.get(target, key, receiver);
    },
  });
}
