import { TextField } from '../../../components/forms/field.tsx';
import type { DraftFaults } from './plan-draft.ts';

interface RateFieldsProps {
  readonly value: { readonly limit: string; readonly period: string };
  readonly onChange: (change: { limit?: string; period?: string }) => void;
  /** The path of the limit in the management interface; empty for the plan itself. */
  readonly field: string;
  readonly faults: DraftFaults;
}

/** The fields for the number of requests and the period, for use beside other fields. */
export function RateFields({ value, onChange, field, faults }: RateFieldsProps) {
  const prefix = field === '' ? '' : `${field}.`;
  return (
    <>
      <TextField
        label="Requests"
        error={faults[`${prefix}limit`]}
        inputMode="numeric"
        placeholder="1000"
        value={value.limit}
        onText={(text) => onChange({ limit: text })}
      />
      <TextField
        label="In each"
        error={faults[`${prefix}period`]}
        hint="second, minute, hour, day, 15 minutes, 7d, P1M …"
        value={value.period}
        placeholder="hour"
        onText={(text) => onChange({ period: text })}
      />
    </>
  );
}
