import type { ReactNode } from 'react';

interface FormProps {
  /** Not called while a field of the form is invalid. */
  readonly onSubmit: () => unknown;
  readonly children: ReactNode;
}

/** A form whose values the gateway checks, but for dates that are typed in part, and fields with a fault from `setCustomValidity`. */
export function Form({ onSubmit, children }: FormProps) {
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (hasValidFields(event.currentTarget)) onSubmit();
      }}
    >
      {children}
    </form>
  );
}

/**
 * False if a field has a fault from `setCustomValidity`, or if a date of the form is typed in part, or does not exist: its value is empty then,
 * which would mean "never". Its `Field` says so, and it has the focus.
 */
export function hasValidFields(form: HTMLFormElement): boolean {
  const fields = [...form.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>('input, textarea')];
  const invalid = fields.filter(
    ({ type, validity }) => validity.customError || (type.startsWith('date') && validity.badInput),
  );
  // This makes the event `invalid`.
  for (const field of invalid) field.checkValidity();
  showField(invalid[0]);
  return invalid.length === 0;
}

/** Focuses the first field of the form that shows a fault, so that the fault is in sight, and read out. */
export function showFirstFault(form: Element | null | undefined): void {
  showField(form?.querySelector<HTMLElement>('[aria-invalid="true"]'));
}

function showField(field: HTMLElement | null | undefined): void {
  const section = field?.closest('details');
  if (section) section.open = true;
  field?.focus();
}
