/** What a check of an installation found. Holds no secret. */
export interface Finding {
  readonly check: 'settings' | 'postgres' | 'redis' | 'backend' | 'replicas';
  /** `unavailable`: it could not be checked because it does not respond. */
  readonly status: 'ok' | 'warning' | 'fault' | 'unavailable';
  readonly finding: string;
  /** What to do; null where there is nothing to do. */
  readonly remedy: string | null;
}

type Check = Finding['check'];

export const ok = (check: Check, finding: string): Finding => ({
  check,
  status: 'ok',
  finding,
  remedy: null,
});

export const warning = (check: Check, finding: string, remedy: string): Finding => ({
  check,
  status: 'warning',
  finding,
  remedy,
});

export const fault = (check: Check, finding: string, remedy: string): Finding => ({
  check,
  status: 'fault',
  finding,
  remedy,
});

export const unavailable = (check: Check, finding: string, remedy: string): Finding => ({
  check,
  status: 'unavailable',
  finding,
  remedy,
});
