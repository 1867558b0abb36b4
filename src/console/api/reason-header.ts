/** The header with the reason for a change, for the audit log. A header carries bytes: UTF-8, one character a byte. */
export function reasonHeader(reason: string | undefined): { readonly 'X-Audit-Reason'?: string } {
  const text = reason?.trim() ?? '';
  if (text === '') return {};
  return { 'X-Audit-Reason': String.fromCharCode(...new TextEncoder().encode(text)) };
}
