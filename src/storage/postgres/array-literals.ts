/** Characters that must be escaped in an element of an array. */
const SPECIAL = /["\\]/;

/** An array literal of Postgres. The client's own conversion would look at each element twice. */
export function textArray(values: readonly string[]): string {
  if (values.length === 0) return '{}';
  const escaped = SPECIAL.test(values.join())
    ? values.map((value) => value.replace(/["\\]/g, '\\$&'))
    : values;
  return `{"${escaped.join('","')}"}`;
}
