import type { TargetedSubmitEvent } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Text } from '../shared/text.tsx';
import { WORDS } from '../words.ts';
import { type OwnKey, SelfService } from './own-key.ts';

const { signIn: words } = WORDS.portal;

interface SignInProps {
  readonly path: string;
  /** Why the consumer is here again. */
  readonly notice: string | undefined;
  readonly onSignedIn: (service: SelfService, key: OwnKey) => void;
}

/** Asks for the key. The field has no name and its form goes nowhere: no browser puts the key into an address. */
export function SignIn({ path, notice, onSignedIn }: SignInProps) {
  const [fault, setFault] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const secret = field.current?.value.trim() ?? '';
    if (isBusy) return;
    if (secret === '') return setFault(words.empty);
    setBusy(true);
    setFault(undefined);
    try {
      const service = new SelfService(path, secret);
      onSignedIn(service, await service.key());
    } catch (error) {
      setFault(String(error instanceof Error ? error.message : error));
      setBusy(false);
      field.current?.focus();
    }
  };
  return (
    <form class="card" onSubmit={submit} noValidate>
      <h1>{words.title}</h1>
      {notice !== undefined && (
        <p id="key-notice" class="warning">
          {notice}
        </p>
      )}
      <label for="key">{words.label}</label>
      <input
        ref={field}
        id="key"
        type="password"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        aria-invalid={fault !== undefined}
        aria-describedby="key-notice key-fault key-hint"
      />
      <p id="key-fault" class="fault" role="alert">
        {fault !== undefined && <Text>{fault}</Text>}
      </p>
      <button type="submit" class="primary" aria-disabled={isBusy}>
        <Text>{isBusy ? words.busy : words.submit}</Text>
      </button>
      <p id="key-hint" class="soft">
        {words.hint}
      </p>
    </form>
  );
}
