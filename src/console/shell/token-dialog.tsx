import { useApi } from '../api/api-context.tsx';
import { Dialog } from '../components/layout/dialog.tsx';
import { Facts } from '../components/layout/facts.tsx';
import { RelativeTime } from '../components/text/relative-time.tsx';
import styles from './shell.module.css';

/** The scopes and restrictions of the token that is signed in. */
export function TokenDialog({ onClose }: { readonly onClose: () => void }) {
  const { type, name, adminTokenId, scopes, onlyTags, expiresAt } = useApi().whoami;
  return (
    <Dialog open onClose={onClose} title={type === 'root' ? 'Root token' : name}>
      <Facts
        facts={[
          ...(adminTokenId === null ? [] : [['Id', <code key="id">{adminTokenId}</code>] as const]),
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
          ['Expires', <RelativeTime key="expires" at={expiresAt} />],
        ]}
      />
    </Dialog>
  );
}
