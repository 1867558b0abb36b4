/**
 * A whole number as it is typed, with or without separators of thousands, or why it is none: `value` is `least` then. A point separates nothing:
 * "2.000" is two to one reader and two thousand to another.
 */
export function readWhole(
  text: string,
  least: number,
): { readonly value: number; readonly fault: string | undefined } {
  const typed = text.trim();
  const isGrouped = /^\d{1,3}(?:[ \u00a0\u202f,'’_]\d{3})+$/.test(typed);
  const digits = isGrouped ? typed.replaceAll(/\D/g, '') : typed;
  if (/^\d{1,15}$/.test(digits) && Number(digits) >= least)
    return { value: Number(digits), fault: undefined };
  if (typed === '') return { value: least, fault: 'Enter a number.' };
  return { value: least, fault: `Enter a whole number from ${least}, such as 2000.` };
}
