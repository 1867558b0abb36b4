import type { components } from '../../../../client/management-api.ts';
import { Button } from '../../../components/forms/button.tsx';
import { CopyButton } from '../../../components/forms/copy-button.tsx';
import styles from '../../../components/forms/secret-once.module.css';
import { SecretOnce } from '../../../components/forms/secret-once.tsx';
import { DialogActions } from '../../../components/layout/dialog.tsx';
import { Notice } from '../../../components/states/notice.tsx';

type Handover = components['schemas']['MadeHandover'];

interface NewSecretProps {
  readonly keyId: string;
  /** Has either the secret or a link for it. */
  readonly made: { readonly secret?: string; readonly handover?: Handover };
  readonly onDone: () => void;
}

/** Shows the new secret of a key, or the link that hands it over. */
export function NewSecret({ keyId, made, onDone }: NewSecretProps) {
  const { secret = '', handover } = made;
  if (handover !== undefined) return <HandoverLink handover={handover} onDone={onDone} />;
  return (
    <SecretOnce
      secret={secret}
      notice="Hand the secret over now: it is shown here once, and leaves the page when you go on."
      file={{ name: `${keyId}.env`, text: `API_KEY_ID=${keyId}\nAPI_KEY=${secret}\n` }}
      onDone={onDone}
    />
  );
}

interface HandoverLinkProps {
  readonly handover: Handover;
  readonly onDone: () => void;
}

function HandoverLink({ handover: { url, expiresAt }, onDone }: HandoverLinkProps) {
  return (
    <>
      <Notice tone="limited">
        Send this link to the consumer. It shows the secret once, until{' '}
        {expiresAt.replace('T', ' ').replace('Z', ' UTC')}, and is shown here only now.
      </Notice>
      <div className={styles.secret}>
        <code>{url}</code>
        <CopyButton text={url} what="link" labelled />
      </div>
      <DialogActions>
        <Button look="primary" onClick={onDone}>
          I have the link
        </Button>
      </DialogActions>
    </>
  );
}
