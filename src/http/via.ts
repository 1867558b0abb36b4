/** The gateway's name in `Via`, in lower case. */
const NAME = 'tollgate';

/** The `Via` value that the gateway adds to a request. */
export const VIA = `1.1 ${NAME}`;

/** Whether one of the hops in a `Via` value is this gateway: `[protocol/]version SP received-by [comment]`. */
export function viaNamesUs(value: string): boolean {
  return value.split(',').some(
    (hop) =>
      hop
        .trim()
        .split(/[ \t]+/)[1]
        ?.toLowerCase() === NAME,
  );
}
