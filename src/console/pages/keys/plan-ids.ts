import { useLive } from '../../api/live.ts';

/** The ids of all plans, sorted; empty if the token may not read plans. */
export function usePlanIds(): readonly string[] {
  const plans = useLive(['plan-ids'], (client, signal) => client.GET('/rate-limit', { signal }), {
    scope: 'plans:read',
    pollMs: 60_000,
  });
  return plans.data?.rateLimits.map(({ rateLimitId }) => rateLimitId) ?? [];
}
