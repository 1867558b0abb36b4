import { SecretOnce } from '../../../components/forms/secret-once.tsx';

interface NewSecretProps {
  readonly keyId: string;
  readonly secret: string;
  readonly onDone: () => void;
}

/** Shows the new secret of a key. */
export function NewSecret({ keyId, secret, onDone }: NewSecretProps) {
  return (
    <SecretOnce
      secret={secret}
      notice="Hand the secret over now: it is shown here once, and leaves the page when you go on."
      file={{ name: `${keyId}.env`, text: `API_KEY_ID=${keyId}\nAPI_KEY=${secret}\n` }}
      onDone={onDone}
    />
  );
}
