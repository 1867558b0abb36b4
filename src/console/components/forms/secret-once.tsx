import { Download } from 'lucide-react';
import { saveFile } from '../../api/save-file.ts';
import { DialogActions } from '../layout/dialog.tsx';
import { Notice } from '../states/notice.tsx';
import { Button } from './button.tsx';
import { CopyButton } from './copy-button.tsx';
import styles from './secret-once.module.css';

interface SecretOnceProps {
  readonly secret: string;
  /** What to do with the secret now, in a sentence. */
  readonly notice: string;
  /** The file for the download; its text contains the secret. */
  readonly file: { readonly name: string; readonly text: string };
  readonly onDone: () => void;
}

/** Shows a new secret, to be copied or downloaded. The secret is in no cache: closing removes it from the page. */
export function SecretOnce({ secret, notice, file, onDone }: SecretOnceProps) {
  return (
    <>
      <Notice tone="limited">{notice}</Notice>
      <div className={styles.secret}>
        <code>{secret}</code>
        <CopyButton text={secret} what="secret" labelled />
      </div>
      <DialogActions>
        <Button onClick={() => saveFile(new Blob([file.text], { type: 'text/plain' }), file.name)}>
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
