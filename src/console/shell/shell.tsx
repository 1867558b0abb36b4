import {
  lazy,
  type ReactNode,
  Suspense,
  useCallback,
  useEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react';
import { useLocation } from 'wouter';
import { useApi } from '../api/api-context.tsx';
import { classes } from '../components/layout/classes.ts';
import { Notice } from '../components/states/notice.tsx';
import { Navigation } from './navigation.tsx';
import styles from './shell.module.css';
import { ShortcutHelp } from './shortcut-help.tsx';
import { TokenDialog } from './token-dialog.tsx';
import { useShortcuts } from './use-shortcuts.ts';

const CommandPalette = lazy(() =>
  import('./command-palette.tsx').then((file) => ({ default: file.CommandPalette })),
);

const FOLDED_KEY = 'tollgate.navigation-folded';

/** The frame of every page: the navigation at the left, and the warning of a root token at the top. */
export function Shell({ children }: { readonly children: ReactNode }) {
  const { whoami } = useApi();
  const isNarrow = useNarrow();
  const [isFolded, setFolded] = useState(() => localStorage.getItem(FOLDED_KEY) === 'true');
  const folded = isNarrow || isFolded;
  const fold = () => {
    localStorage.setItem(FOLDED_KEY, String(!isFolded));
    setFolded(!isFolded);
  };
  const [opened, setOpened] = useState<'palette' | 'help' | 'token'>();
  const openPalette = useCallback(() => setOpened('palette'), []);
  const openHelp = useCallback(() => setOpened('help'), []);
  const openToken = useCallback(() => setOpened('token'), []);
  const close = useCallback(() => setOpened(undefined), []);
  useShortcuts({ openPalette, openHelp });
  return (
    <div className={classes(styles.shell, folded && styles.folded)}>
      <a className={styles.skip} href="#main">
        Skip to the content
      </a>
      <Navigation
        folded={folded}
        onFold={isNarrow ? undefined : fold}
        onFind={openPalette}
        onHelp={openHelp}
        onToken={openToken}
      />
      <main id="main" className={styles.main} tabIndex={-1} ref={useFocusOnNewPage()}>
        <div>
          {whoami.type === 'root' && (
            <Notice tone="limited">
              You are signed in with the root token. It may do everything and can't be limited: keep it for
              emergencies, and use an admin token from day to day.
            </Notice>
          )}
          {children}
        </div>
      </main>
      {opened === 'palette' && (
        <Suspense>
          <CommandPalette onClose={close} />
        </Suspense>
      )}
      {opened === 'token' && <TokenDialog onClose={close} />}
      {opened === 'help' && <ShortcutHelp onClose={close} />}
    </div>
  );
}

/** Focuses the content after a navigation, for the keyboard and for screen readers. */
function useFocusOnNewPage() {
  const main = useRef<HTMLElement>(null);
  const [location] = useLocation();
  const shown = useRef(location);
  useEffect(() => {
    if (shown.current === location) return;
    shown.current = location;
    main.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, [location]);
  return main;
}

const NARROW = '(max-width: 900px)';

/** True if the window is narrow, or zoomed in. */
function useNarrow(): boolean {
  return useSyncExternalStore(subscribeToWidth, () => matchMedia(NARROW).matches);
}

function subscribeToWidth(listener: () => void): () => void {
  const query = matchMedia(NARROW);
  query.addEventListener('change', listener);
  return () => query.removeEventListener('change', listener);
}
