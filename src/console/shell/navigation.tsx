import { Keyboard, LogOut, PanelLeftClose, PanelLeftOpen, Search, TriangleAlert } from 'lucide-react';
import { Link, useRoute } from 'wouter';
import { useApi, useScopes } from '../api/api-context.tsx';
import { signOut } from '../api/sign-out.ts';
import { classes } from '../components/layout/classes.ts';
import { counted } from '../format/numbers.ts';
import iconUrl from '../icon.svg';
import { NAVIGATION, type NavigationEntry } from '../routes.tsx';
import styles from './shell.module.css';
import { ThemeButton } from './theme-button.tsx';

interface NavigationProps {
  readonly folded: boolean;
  /** Undefined if there is no room to unfold the navigation. */
  readonly onFold: (() => void) | undefined;
  readonly onOpen: (dialog: 'palette' | 'help' | 'token') => void;
}

/** The pages that the token or the person may read, and the actions of the session. */
export function Navigation({ folded, onFold, onOpen }: NavigationProps) {
  const { whoami, client, session } = useApi();
  const { can } = useScopes();
  const FoldIcon = folded ? PanelLeftOpen : PanelLeftClose;
  return (
    <div className={styles.column}>
      <div className={styles.side}>
        <Link className={styles.brand} href="/">
          <img src={iconUrl} alt="" />
          <span className={styles.word}>Tollgate</span>
        </Link>
        <button
          type="button"
          className={styles.search}
          onClick={() => onOpen('palette')}
          title="Find (Ctrl K)"
        >
          <Search aria-hidden="true" />
          <span className={styles.word}>Find…</span>
          <kbd className={styles.word}>Ctrl K</kbd>
        </button>
        <nav aria-label="Pages">
          <ul className={styles.links}>
            {NAVIGATION.filter(({ scope }) => can(scope)).map((entry) => (
              <li key={entry.path}>
                <NavigationLink {...entry} />
              </li>
            ))}
          </ul>
        </nav>
        <div className={styles.spacer} />
        <button
          type="button"
          className={classes(styles.person, whoami.type === 'root' && styles.ofRoot)}
          onClick={() => onOpen('token')}
          title={whoami.type === 'person' ? 'What you may do' : 'What this token may do'}
        >
          {whoami.type === 'root' && <TriangleAlert className={styles.root} aria-hidden="true" />}
          <span className={styles.word}>
            <bdi className={styles.name}>{whoami.type === 'root' ? 'Root token' : whoami.name}</bdi>
            {whoami.email !== null && <bdi className={styles.email}>{whoami.email}</bdi>}
            {counted(whoami.scopes.length, 'scope')} · Tollgate {whoami.version}
          </span>
        </button>
        <button
          type="button"
          className={classes(styles.link, styles.keyboard)}
          onClick={() => onOpen('help')}
          title="Keyboard shortcuts"
        >
          <Keyboard aria-hidden="true" />
          <span className={styles.word}>Keyboard shortcuts</span>
        </button>
        <ThemeButton />
        {onFold !== undefined && (
          <button
            type="button"
            className={styles.link}
            onClick={onFold}
            title={folded ? 'Expand' : 'Collapse'}
          >
            <FoldIcon aria-hidden="true" />
            <span className={styles.word}>{folded ? 'Expand sidebar' : 'Collapse sidebar'}</span>
          </button>
        )}
        <button
          type="button"
          className={styles.link}
          onClick={() => signOut({ client, session })}
          title="Sign out"
        >
          <LogOut aria-hidden="true" />
          <span className={styles.word}>Sign out</span>
        </button>
      </div>
    </div>
  );
}

function NavigationLink({ path, label, icon: Icon }: NavigationEntry & { readonly path: string }) {
  const [isExact] = useRoute(path);
  const [isBelow] = useRoute(`${path}/*`);
  const isCurrent = isExact || (isBelow && path !== '/');
  return (
    <Link className={styles.link} href={path} title={label} aria-current={isCurrent ? 'page' : undefined}>
      <Icon aria-hidden="true" />
      <span className={styles.word}>{label}</span>
    </Link>
  );
}
