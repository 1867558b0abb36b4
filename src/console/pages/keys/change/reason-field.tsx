import { Field, Input } from '../../../components/forms/field.tsx';

interface ReasonFieldProps {
  readonly value: string;
  readonly onChange: (reason: string) => void;
}

/** Why something is done. */
export function ReasonField({ value, onChange }: ReasonFieldProps) {
  return (
    <Field label="Reason" optional hint="Kept in the audit log.">
      {(control) => (
        <Input
          {...control}
          autoComplete="off"
          maxLength={256}
          value={value}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </Field>
  );
}
