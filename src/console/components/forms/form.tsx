import type { ReactNode } from 'react';

interface FormProps {
  /** Not called while a date of the form is incomplete. */
  readonly onSubmit: () => unknown;
  readonly children: ReactNode;
}

/** A form whose values the gateway checks, but for dates that are typed in part. */
export function Form({ onSubmit, children }: FormProps) {
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (hasCompleteDates(event.currentTarget)) onSubmit();
      }}
    >
      {children}
    </form>
  );
}

/**
 * False if a date of the form is typed in part, or does not exist: its value is empty then, which would mean "never". Its `Field` says so, and
 * it has the focus.
 */
export function hasCompleteDates(form: HTMLFormElement): boolean {
  const dates = [...form.querySelectorAll<HTMLInputElement>('input[type^="date"]')];
  const incomplete = dates.filter(({ validity }) => validity.badInput);
  // This makes the event `invalid`.
  for (const date of incomplete) date.checkValidity();
  incomplete[0]?.focus();
  return incomplete.length === 0;
}
