import { TextField } from './field.tsx';

interface ReasonFieldProps {
  readonly value: string;
  readonly onChange: (reason: string) => void;
}

/** The reason for a change. */
export function ReasonField({ value, onChange }: ReasonFieldProps) {
  return (
    <TextField
      label="Reason"
      optional
      hint="Kept in the audit log."
      autoComplete="off"
      maxLength={256}
      value={value}
      onText={onChange}
    />
  );
}
