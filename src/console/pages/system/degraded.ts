import type { components } from '../../../client/management-api.ts';

export type System = components['schemas']['System'];
export type DegradedPart = System['degraded'][number];

/** What is degraded, and what that means for administrators and consumers. */
export function degradedSentence(part: DegradedPart): string {
  switch (part) {
    case 'postgres':
      return 'Postgres does not respond: keys and plans can’t be read or changed; requests with keys that are in memory go on.';
    case 'redis':
      return 'Redis does not respond: limits are enforced as LIMITER_FAILURE_MODE says.';
    case 'limiter':
      return 'Limits are not counted together by all replicas.';
    case 'usage':
      return 'Usage is late: counts wait to be written.';
    case 'backend':
      return 'The backend does not respond: requests fail with 502.';
  }
}
