import { useState } from 'preact/hooks';
import { WORDS } from '../words.ts';
import { Text } from './text.tsx';

const { copy, copied, copyFailed } = WORDS.handover;

/** Copies a text. Says so if the browser does not allow that, which needs HTTPS. */
export function CopyButton({ text }: { readonly text: string }) {
  const [label, setLabel] = useState<string>(copy);
  const onClick = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setLabel(copied);
    } catch {
      setLabel(copyFailed);
    }
  };
  return (
    <button type="button" onClick={onClick} aria-live="polite">
      <Text>{label}</Text>
    </button>
  );
}
