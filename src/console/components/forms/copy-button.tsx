import { Check, Copy } from 'lucide-react';
import { useEffect, useState } from 'react';
import { toast } from '../states/toast.tsx';
import { Button } from './button.tsx';
import { focusAround } from './focus-around.ts';

interface CopyButtonProps {
  readonly text: string;
  /** The name of the copied text: "key id", "secret", "curl line". */
  readonly what: string;
  /** Shows the word *Copy* beside the icon. */
  readonly labelled?: boolean;
}

export function CopyButton({ text, what, labelled = false }: CopyButtonProps) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 2000);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = async () => {
    if (await copyText(text)) setCopied(true);
    else
      toast.failed(`The browser did not allow to copy the ${what}`, 'Select the text and copy it by hand.');
  };
  const Icon = copied ? Check : Copy;
  return (
    <Button
      // What is copied may hide by itself.
      ref={focusAround}
      look={labelled ? undefined : 'quiet'}
      small
      icon={!labelled}
      aria-label={`Copy ${what}`}
      title={`Copy ${what}`}
      onClick={copy}
    >
      <Icon aria-hidden="true" />
      {labelled && (copied ? 'Copied' : 'Copy')}
      <span className="visually-hidden" role="status">
        {copied ? `Copied the ${what}` : ''}
      </span>
    </Button>
  );
}

/** Copies a text to the clipboard. False if the browser does not allow that. */
async function copyText(text: string): Promise<boolean> {
  // Browsers have `navigator.clipboard` only in secure contexts: not for plain HTTP from another host.
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
  // A dialog traps the focus: elements outside of it can't be selected.
  (focused?.closest('[role=dialog]') ?? document.body).append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return copied;
}
