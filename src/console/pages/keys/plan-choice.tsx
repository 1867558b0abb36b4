import { useLive } from '../../api/live.ts';
import { type Option, SelectField } from '../../components/forms/field.tsx';

/** All plans, after a choice of `none` of them. The chosen one is among them, also where the plans are not known or it was deleted. */
export function usePlanOptions(chosen: string, none: string): readonly Option[] {
  const plans = useLive(['plan-ids'], (client, signal) => client.GET('/rate-limit', { signal }), {
    scope: 'plans:read',
    pollMs: 60_000,
  });
  const ids = plans.data?.rateLimits.map(({ rateLimitId }) => rateLimitId) ?? [];
  const all = new Set([...ids, chosen].filter((id) => id !== ''));
  return [['', none], ...[...all].map((id): Option => [id, id])];
}

interface PlanFieldProps {
  /** Empty: the default plan. */
  readonly value: string;
  readonly error?: string | undefined;
  readonly onChange: (rateLimitId: string) => void;
}

/** Chooses the plan of a key. */
export function PlanField({ value, error, onChange }: PlanFieldProps) {
  return (
    <SelectField
      label="Plan"
      error={error}
      value={value}
      options={usePlanOptions(value, 'The default plan')}
      onText={onChange}
    />
  );
}
