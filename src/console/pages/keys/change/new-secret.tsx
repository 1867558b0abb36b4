import type { components } from '../../../../client/management-api.ts';
import { SecretOnce } from '../../../components/forms/secret-once.tsx';

interface NewSecretProps {
  readonly keyId: string;
  /** Has either the secret or a link for it. */
  readonly made: { readonly secret?: string; readonly handover?: components['schemas']['MadeHandover'] };
  readonly onDone: () => void;
}

/** Shows the new secret of a key, or the link that hands it over. */
export function NewSecret({ keyId, made: { secret = '', handover }, onDone }: NewSecretProps) {
  if (handover === undefined)
    return (
      <SecretOnce
        secret={secret}
        notice="Hand the secret over now: it is shown here once, and leaves the page when you go on."
        file={{ name: `${keyId}.env`, text: `API_KEY_ID=${keyId}\nAPI_KEY=${secret}\n` }}
        onDone={onDone}
      />
    );
  const until = handover.expiresAt.replace('T', ' ').replace('Z', ' UTC');
  return (
    <SecretOnce
      secret={handover.url}
      what="link"
      notice={`Send this link to the consumer. It shows the secret once, until ${until}, and is shown here only now.`}
      done="I have the link"
      onDone={onDone}
    />
  );
}
