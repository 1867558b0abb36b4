import { TextField } from './field.tsx';

interface ReasonFieldProps {
  readonly error?: string | undefined;
  readonly value: string;
  readonly onChange: (reason: string) => void;
}

/** The reason for a change. */
export function ReasonField({ error, value, onChange }: ReasonFieldProps) {
  return (
    <TextField
      label="Reason"
      error={error}
      optional
      hint="Kept in the audit log."
      autoComplete="off"
      maxLength={256}
      value={value}
      onText={onChange}
    />
  );
}
