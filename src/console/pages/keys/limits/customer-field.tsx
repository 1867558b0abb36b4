import { TextField } from '../../../components/forms/field.tsx';
import type { LimitCounter } from '../key-model.ts';

interface CustomerFieldProps {
  readonly counter: LimitCounter;
  readonly error: string | undefined;
  readonly value: string;
  readonly onChange: (customerId: string) => void;
}

/** Chooses the customer, for a limit with a window for each customer. */
export function CustomerField({ counter, error, value, onChange }: CustomerFieldProps) {
  if (counter.per !== 'customer') return null;
  return (
    <TextField
      label="Customer"
      error={error}
      hint="The value of the customer header; anonymous for requests without one."
      autoComplete="off"
      maxLength={128}
      placeholder="anonymous"
      value={value}
      onText={onChange}
    />
  );
}

/** The customer in the body of a request about a limit. */
export function customerOf({ per }: LimitCounter, customerId: string): { readonly customerId?: string } {
  return per === 'customer' ? { customerId: customerId.trim() || 'anonymous' } : {};
}
