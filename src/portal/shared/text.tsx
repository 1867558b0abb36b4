/**
 * A text that changes. It has an element of that key: in a page that the browser has translated, the text node is no longer there to be changed.
 */
export function Text({ children }: { readonly children: string }) {
  return <span key={children}>{children}</span>;
}
