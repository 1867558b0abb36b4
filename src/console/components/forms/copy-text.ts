/** Puts a text on the clipboard. False where the browser does not let this page. */
export async function copyText(text: string): Promise<boolean> {
  // Missing in pages that came over plain HTTP from another host than this one.
  if (navigator.clipboard === undefined) return copyBySelection(text);
  return navigator.clipboard.writeText(text).then(
    () => true,
    () => copyBySelection(text),
  );
}

function copyBySelection(text: string): boolean {
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'visually-hidden';
  const focused = document.activeElement;
  // In a dialog that keeps the focus, what is outside of it can't be selected.
  (focused?.closest('[role=dialog]') ?? document.body).append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return copied;
}
