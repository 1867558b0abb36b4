/**
 * Focuses the first filter of the page, for a button that goes away when it is pressed, and would take the focus with it. Rather a choice than
 * a text: that would open the keyboard of a phone.
 */
export function focusFilters(): void {
  const of = (control: string) => document.querySelector<HTMLElement>(`search ${control}`);
  (of('select') ?? of('input'))?.focus();
}
