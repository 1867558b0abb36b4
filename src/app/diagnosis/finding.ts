/** What a check of an installation found. Holds no secret. */
export interface Finding {
  readonly check: 'settings' | 'postgres' | 'redis' | 'backend' | 'replicas';
  /** `unavailable`: it could not be checked because it does not respond. */
  readonly status: 'ok' | 'warning' | 'fault' | 'unavailable';
  readonly finding: string;
  /** What to do; null where there is nothing to do. */
  readonly remedy: string | null;
}

/** What makes the findings of a check. */
export function findingsOf(check: Finding['check']) {
  const toBeDone =
    (status: Finding['status']) =>
    (finding: string, remedy: string): Finding => ({ check, status, finding, remedy });
  return {
    ok: (finding: string): Finding => ({ check, status: 'ok', finding, remedy: null }),
    warning: toBeDone('warning'),
    fault: toBeDone('fault'),
    unavailable: toBeDone('unavailable'),
  };
}
