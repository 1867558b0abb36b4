import { useLive } from '../../api/live.ts';
import { type Option, SelectField } from '../../components/forms/field.tsx';

/** The ids of all plans, sorted; empty if the token may not read plans. */
export function usePlanIds(): readonly string[] {
  const plans = useLive(['plan-ids'], (client, signal) => client.GET('/rate-limit', { signal }), {
    scope: 'plans:read',
    pollMs: 60_000,
  });
  return plans.data?.rateLimits.map(({ rateLimitId }) => rateLimitId) ?? [];
}

interface PlanFieldProps {
  /** Empty: the default plan. */
  readonly value: string;
  readonly error?: string | undefined;
  readonly onChange: (rateLimitId: string) => void;
}

/** Chooses the plan of a key. A plan that it has stays among them, also where the plans are not known. */
export function PlanField({ value, error, onChange }: PlanFieldProps) {
  const ids = new Set([...usePlanIds(), value].filter((id) => id !== ''));
  return (
    <SelectField
      label="Plan"
      error={error}
      value={value}
      options={[['', 'The default plan'], ...[...ids].map((id): Option => [id, id])]}
      onText={onChange}
    />
  );
}
