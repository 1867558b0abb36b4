import { Download } from 'lucide-react';
import { saveFile } from '../../api/save-file.ts';
import { DialogActions } from '../layout/dialog.tsx';
import { Notice } from '../states/notice.tsx';
import { Button } from './button.tsx';
import { CopyButton } from './copy-button.tsx';
import styles from './secret-once.module.css';

interface SecretOnceProps {
  /** The secret, or a link that shows it. */
  readonly secret: string;
  readonly what?: 'secret' | 'link';
  /** What to do with it now. */
  readonly notice: string;
  /** The file for the download; its text contains the secret. */
  readonly file?: { readonly name: string; readonly text: string };
  readonly done?: string;
  readonly onDone: () => void;
}

/** Shows a new secret, to be copied or downloaded, or a link to one. It is in no cache: closing removes it from the page. */
export function SecretOnce(props: SecretOnceProps) {
  const { secret, what = 'secret', notice, file, done = 'I have kept it', onDone } = props;
  return (
    <>
      <Notice tone="limited">{notice}</Notice>
      <div className={styles.secret}>
        <code>{secret}</code>
        <CopyButton text={secret} what={what} labelled />
      </div>
      <DialogActions>
        {file !== undefined && (
          <Button onClick={() => saveFile(new Blob([file.text], { type: 'text/plain' }), file.name)}>
            <Download aria-hidden="true" />
            Download
          </Button>
        )}
        <Button look="primary" onClick={onDone}>
          {done}
        </Button>
      </DialogActions>
    </>
  );
}
