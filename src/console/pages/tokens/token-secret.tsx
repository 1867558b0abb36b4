import { Download } from 'lucide-react';
import { Button } from '../../components/forms/button.tsx';
import { CopyButton } from '../../components/forms/copy-button.tsx';
import { DialogActions } from '../../components/layout/dialog.tsx';
import { Notice } from '../../components/states/notice.tsx';
import styles from './tokens.module.css';

interface TokenSecretProps {
  readonly adminTokenId: string;
  readonly secret: string;
  readonly onDone: () => void;
}

/** The secret of a token, once: the gateway keeps only its hash. */
export function TokenSecret({ adminTokenId, secret, onDone }: TokenSecretProps) {
  return (
    <>
      <Notice tone="limited">Keep it now: nobody can show it again, not even the gateway.</Notice>
      <div className={styles.secret}>
        <code>{secret}</code>
        <CopyButton text={secret} what="secret" labelled />
      </div>
      <DialogActions>
        <Button onClick={() => download(`${adminTokenId}.env`, `TOLLGATE_TOKEN=${secret}\n`)}>
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
