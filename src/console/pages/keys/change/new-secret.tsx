import { Download } from 'lucide-react';
import { Button } from '../../../components/forms/button.tsx';
import { CopyButton } from '../../../components/forms/copy-button.tsx';
import { DialogActions } from '../../../components/layout/dialog.tsx';
import { Notice } from '../../../components/states/notice.tsx';
import styles from './key-form.module.css';

interface NewSecretProps {
  readonly keyId: string;
  readonly secret: string;
  readonly onDone: () => void;
}

/** Shows a secret that was just made, to be copied or kept in a file. It is in no cache: when this closes it is gone from the page. */
export function NewSecret({ keyId, secret, onDone }: NewSecretProps) {
  return (
    <>
      <Notice tone="limited">
        Hand the secret over now: it is shown here once, and leaves the page when you go on.
      </Notice>
      <div className={styles.secret}>
        <code>{secret}</code>
        <CopyButton text={secret} what="secret" labelled />
      </div>
      <DialogActions>
        <Button onClick={() => download(`${keyId}.env`, `API_KEY_ID=${keyId}\nAPI_KEY=${secret}\n`)}>
          <Download aria-hidden="true" />
          Download
        </Button>
        <Button look="primary" onClick={onDone}>
          I have kept it
        </Button>
      </DialogActions>
    </>
  );
}

function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
