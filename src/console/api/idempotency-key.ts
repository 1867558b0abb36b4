import { useRef } from 'react';

/**
 * Gives the `Idempotency-Key` of a form: the same for the same body for as long as the form is open, so that a double click, or another try after
 * a lost response, performs once; another one as soon as something in the body has changed.
 */
export function useIdempotencyKey(): (body: unknown) => string {
  const sent = useRef({ body: '', key: '' });
  return (body) => {
    const text = JSON.stringify(body);
    if (sent.current.key === '' || sent.current.body !== text)
      sent.current = { body: text, key: randomKey() };
    return sent.current.key;
  };
}

/** `crypto.randomUUID` is missing in pages that came over plain HTTP from another host than this one. */
function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('');
}
