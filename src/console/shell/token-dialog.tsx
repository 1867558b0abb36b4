import { useApi } from '../api/api-context.tsx';
import { Dialog } from '../components/layout/dialog.tsx';
import { Facts } from '../components/layout/facts.tsx';
import { Notice } from '../components/states/notice.tsx';
import { RelativeTime } from '../components/text/relative-time.tsx';
import styles from './shell.module.css';

export const ROOT_WARNING =
  "You are signed in with the root token. It may do everything and can't be limited: keep it for emergencies, and use an admin token from day to day.";

/** The scopes and restrictions of the token or the person that is signed in. */
export function TokenDialog({ onClose }: { readonly onClose: () => void }) {
  const { type, name, email, adminTokenId, sessionId, scopes, onlyTags, expiresAt } = useApi().whoami;
  const id = adminTokenId ?? sessionId;
  return (
    <Dialog onClose={onClose} title={type === 'root' ? 'Root token' : name}>
      {type === 'root' && <Notice tone="limited">{ROOT_WARNING}</Notice>}
      <Facts
        facts={[
          ...(email === null ? [] : [['Email', <bdi key="email">{email}</bdi>] as const]),
          ...(id === null
            ? []
            : [[type === 'person' ? 'Session' : 'Id', <code key="id">{id}</code>] as const]),
          [
            'Scopes',
            <ul key="scopes" className={styles.scopes}>
              {scopes.map((scope) => (
                <li key={scope}>
                  <code>{scope}</code>
                </li>
              ))}
            </ul>,
          ],
          ['Keys', onlyTags.length === 0 ? 'all' : `only those tagged ${onlyTags.join(', ')}`],
          [type === 'person' ? 'Session ends' : 'Expires', <RelativeTime key="expires" at={expiresAt} />],
        ]}
      />
    </Dialog>
  );
}
