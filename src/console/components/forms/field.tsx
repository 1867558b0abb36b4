import { CircleX } from 'lucide-react';
import { type ComponentProps, type ReactNode, type SyntheticEvent, useEffect, useId, useState } from 'react';
import { readWhole } from '../../format/whole-number.ts';
import { classes } from '../layout/classes.ts';
import styles from './field.module.css';

interface FieldProps {
  readonly label: ReactNode;
  readonly hint?: ReactNode;
  /** The fault of the value: shown beside the field and read out with it. */
  readonly error?: string | undefined;
  readonly optional?: boolean;
  /** Renders the control with the attributes that connect it to label, hint and error. */
  readonly children: (control: ControlProps) => ReactNode;
}

interface ControlProps {
  readonly id: string;
  readonly 'aria-invalid': boolean;
  readonly 'aria-describedby': string | undefined;
  readonly onInvalid: (event: SyntheticEvent) => void;
  readonly onKeyUp: () => void;
}

const INCOMPLETE = 'Enter a complete date that exists, or clear it.';

/**
 * A labelled control of a form: `<Field label="Name">{(control) => <Input {...control} />}</Field>`. It also says that a date is incomplete,
 * after its `Form` was submitted.
 */
export function Field({ label, hint, error: fault, optional = false, children }: FieldProps) {
  const id = useId();
  const [incomplete, setIncomplete] = useState<HTMLInputElement>();
  const error = incomplete === undefined ? fault : INCOMPLETE;
  const lookAgain = () => {
    if (incomplete?.validity.badInput === false) setIncomplete(undefined);
  };
  // Any render may be due to a date that has been completed, also one that was chosen elsewhere in the form.
  useEffect(lookAgain);
  const describedBy = [hint !== undefined && `${id}-hint`, error !== undefined && `${id}-error`].filter(
    Boolean,
  );
  return (
    <div className={styles.field}>
      <label className={styles.label} htmlFor={id}>
        {label}
        {optional && <span className={styles.optional}>optional</span>}
      </label>
      {children({
        id,
        'aria-invalid': error !== undefined,
        'aria-describedby': describedBy.length > 0 ? describedBy.join(' ') : undefined,
        onInvalid: ({ currentTarget: control }) => {
          if (control instanceof HTMLInputElement) setIncomplete(control);
        },
        // An incomplete date that is cleared with the keyboard makes no render: its value was empty already.
        onKeyUp: lookAgain,
      })}
      {error !== undefined && (
        <p id={`${id}-error`} className={styles.error}>
          <CircleX aria-hidden="true" />
          {error}
        </p>
      )}
      {hint !== undefined && (
        <p id={`${id}-hint`} className={styles.hint}>
          {hint}
        </p>
      )}
    </div>
  );
}

type TextProps<Tag extends 'input' | 'textarea'> = Omit<FieldProps, 'children'> &
  Omit<ComponentProps<Tag>, 'value' | 'onChange'> & {
    readonly value: string;
    readonly onText: (text: string) => void;
  };

/** A text field for a line of text, a date or a number. */
export function TextField({ label, hint, error, optional = false, onText, ...input }: TextProps<'input'>) {
  return (
    <Field label={label} hint={hint} error={error} optional={optional}>
      {(control) => <Input {...control} {...input} onChange={({ target }) => onText(target.value)} />}
    </Field>
  );
}

/**
 * A text field for a secret that is typed or pasted. It is not of the type "password", which password managers fill and keep, whatever
 * `autocomplete` says.
 */
export function SecretField(props: TextProps<'input'>) {
  return (
    <TextField
      {...props}
      className={styles.masked}
      autoComplete="off"
      autoCapitalize="none"
      autoCorrect="off"
      spellCheck={false}
    />
  );
}

/** A text field for a whole number from 1, which `readWhole` reads: a field for numbers takes "2.000" as 2, and changes with the mouse wheel. */
export function CountField({ error, ...props }: TextProps<'input'>) {
  const { fault } = readWhole(props.value, 1);
  return (
    <TextField
      {...props}
      error={fault ?? error}
      inputMode="numeric"
      // The form is not submitted with it.
      ref={(input) => input?.setCustomValidity(fault ?? '')}
    />
  );
}

/** A field for several lines of text. */
export function TextAreaField({
  label,
  hint,
  error,
  optional = false,
  onText,
  ...area
}: TextProps<'textarea'>) {
  return (
    <Field label={label} hint={hint} error={error} optional={optional}>
      {(control) => <TextArea {...control} {...area} onChange={({ target }) => onText(target.value)} />}
    </Field>
  );
}

export function Input({ className, ...props }: ComponentProps<'input'>) {
  return <input className={classes(styles.control, className)} {...props} />;
}

function TextArea({ className, ...props }: ComponentProps<'textarea'>) {
  return <textarea className={classes(styles.control, className)} {...props} />;
}

/** A value that can be chosen, and what it is called. */
export type Option = readonly [value: string | number, label: string];

interface SelectProps extends Omit<ComponentProps<'select'>, 'children' | 'onChange'> {
  readonly options: readonly Option[];
  readonly onText: (value: string) => void;
}

/** The browser's own select element: it works with every keyboard, screen reader and phone. */
export function Select({ className, options, onText, ...props }: SelectProps) {
  return (
    <select
      className={classes(styles.control, className)}
      onChange={({ target }) => onText(target.value)}
      {...props}
    >
      {options.map(([value, label]) => (
        <option key={value} value={value}>
          {label}
        </option>
      ))}
    </select>
  );
}

/** A field with a choice. */
export function SelectField({
  label,
  hint,
  error,
  ...select
}: Pick<FieldProps, 'label' | 'hint' | 'error'> & SelectProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(control) => <Select {...control} {...select} />}
    </Field>
  );
}

interface CheckboxProps extends ComponentProps<'input'> {
  readonly label: ReactNode;
  readonly hint?: ReactNode;
}

export function Checkbox({ label, hint, ...props }: CheckboxProps) {
  const id = useId();
  return (
    <div className={styles.check}>
      <input
        type="checkbox"
        id={id}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        {...props}
      />
      <div>
        <label htmlFor={id}>{label}</label>
        {hint !== undefined && (
          <p id={`${id}-hint`} className={styles.hint}>
            {hint}
          </p>
        )}
      </div>
    </div>
  );
}
