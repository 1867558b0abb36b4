import { lazy, type ReactNode, Suspense, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { useLocation } from 'wouter';
import { useApi } from '../api/api-context.tsx';
import { siteStorage } from '../api/browser-storage.ts';
import { classes } from '../components/layout/classes.ts';
import { Dialog } from '../components/layout/dialog.tsx';
import { Notice } from '../components/states/notice.tsx';
import { Navigation } from './navigation.tsx';
import { PageFault } from './page-error-boundary.tsx';
import { SessionEnd } from './session-end.tsx';
import styles from './shell.module.css';
import { ShortcutHelp } from './shortcut-help.tsx';
import { ROOT_WARNING, TokenDialog } from './token-dialog.tsx';
import { useShortcuts, useSingleKeys } from './use-shortcuts.ts';

const CommandPalette = lazy(async () => {
  try {
    const { CommandPalette: loaded } = await import('./command-palette.tsx');
    return { default: loaded };
  } catch {
    // Vite takes a handler of the promise for a part of the import, and its own failures pass it by.
    return { default: MissingPalette };
  }
});

function MissingPalette({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Go to" onClose={onClose}>
      <PageFault title="The search can’t be shown" />
    </Dialog>
  );
}

const ROOT_SEEN_KEY = 'tollgate.root-notice-seen';
const FOLDED_KEY = 'tollgate.navigation-folded';

/** The frame of every page: the navigation at the left, and the warning of a root token at the top. */
export function Shell({ children }: { readonly children: ReactNode }) {
  const { whoami } = useApi();
  const isNarrow = useNarrow();
  const [isFolded, setFolded] = useState(() => siteStorage.getItem(FOLDED_KEY) === 'true');
  const folded = isNarrow || isFolded;
  const fold = () => {
    siteStorage.setItem(FOLDED_KEY, String(!isFolded));
    setFolded(!isFolded);
  };
  const [opened, setOpened] = useState<'palette' | 'help' | 'token'>();
  const close = () => setOpened(undefined);
  const [hasSingleKeys, setSingleKeys] = useSingleKeys();
  useShortcuts(setOpened, hasSingleKeys);
  const isRootNoticeShown = useFirstView();
  return (
    <div className={classes(styles.shell, folded && styles.folded)}>
      <a className={styles.skip} href="#main">
        Skip to the content
      </a>
      <Navigation folded={folded} onFold={isNarrow ? undefined : fold} onOpen={setOpened} />
      <main id="main" className={styles.main} tabIndex={-1} ref={useFocusOnNewPage()}>
        <div>
          {whoami.type === 'root' && isRootNoticeShown && <Notice tone="limited">{ROOT_WARNING}</Notice>}
          <SessionEnd />
          {children}
        </div>
      </main>
      {opened === 'palette' && (
        <Suspense>
          <CommandPalette onClose={close} />
        </Suspense>
      )}
      {opened === 'token' && <TokenDialog onClose={close} />}
      {opened === 'help' && (
        <ShortcutHelp hasSingleKeys={hasSingleKeys} onSingleKeys={setSingleKeys} onClose={close} />
      )}
    </div>
  );
}

/** True until the first navigation, and never again in this browser. After that an icon in the navigation says it. */
function useFirstView(): boolean {
  const [location] = useLocation();
  const [first] = useState(location);
  const [isSeen, setSeen] = useState(() => siteStorage.getItem(ROOT_SEEN_KEY) === 'true');
  useEffect(() => {
    siteStorage.setItem(ROOT_SEEN_KEY, 'true');
    if (location !== first) setSeen(true);
  }, [location, first]);
  return !isSeen;
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
