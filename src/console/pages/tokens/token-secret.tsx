import { SecretOnce } from '../../components/forms/secret-once.tsx';

interface TokenSecretProps {
  readonly adminTokenId: string;
  readonly secret: string;
  readonly onDone: () => void;
}

/** Shows the new secret of a token once: the gateway keeps only its digest. */
export function TokenSecret({ adminTokenId, secret, onDone }: TokenSecretProps) {
  return (
    <SecretOnce
      secret={secret}
      notice="Keep it now: it can not be shown again, not even by the gateway."
      file={{ name: `${adminTokenId}.env`, text: `TOLLGATE_TOKEN=${secret}\n` }}
      onDone={onDone}
    />
  );
}
