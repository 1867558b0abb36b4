import type { components } from '../../../client/management-api.ts';
import type { Column } from '../../components/layout/data-table.tsx';
import { scopeWords } from './scope-words.ts';
import styles from './tokens.module.css';

/** What a token or a session may do. */
type Granted = Pick<components['schemas']['Session'], 'scopes' | 'onlyTags'>;

/** What may be done, and with which keys: on a phone the second line says it. */
export const GRANT_COLUMNS: readonly Column<Granted>[] = [
  {
    id: 'scopes',
    header: 'May',
    wideOnly: true,
    cell: ({ scopes }) => (
      <span className={styles.scopes} title={scopes.join(', ')}>
        {scopeWords(scopes)}
      </span>
    ),
  },
  {
    id: 'tags',
    header: 'Keys',
    wideOnly: true,
    cell: ({ onlyTags }) => (onlyTags.length === 0 ? 'all' : `with ${onlyTags.join(', ')}`),
  },
];

/** The same in one text. */
export function grantWords({ scopes, onlyTags }: Granted): string {
  return onlyTags.length === 0
    ? scopeWords(scopes)
    : `${scopeWords(scopes)}, keys with ${onlyTags.join(', ')}`;
}
