import { useEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { useApi } from '../api/api-context.tsx';
import { siteStorage } from '../api/browser-storage.ts';
import { NAVIGATION } from '../routes.tsx';

const SEQUENCE_MS = 1000;

const STORAGE_KEY = 'tollgate.single-key-shortcuts';

/** Whether shortcuts of single keys are on, and how to switch them. Speech input and unsteady hands press them by accident (WCAG 2.1.4). */
export function useSingleKeys(): readonly [isOn: boolean, switchTo: (isOn: boolean) => void] {
  const [isOn, setOn] = useState(() => siteStorage.getItem(STORAGE_KEY) !== 'off');
  const switchTo = (next: boolean) => {
    if (next) siteStorage.removeItem(STORAGE_KEY);
    else siteStorage.setItem(STORAGE_KEY, 'off');
    setOn(next);
  };
  return [isOn, switchTo];
}

/**
 * `Ctrl K`: the palette; `/`: the search field of the page, or else the palette; `?`: help; `g` and a letter: a page.
 * Without `hasSingleKeys` there is only the first. Single keys do nothing while the person types or a dialog is open,
 * and no key does while a secret is made or shown that can't be shown again.
 */
export function useShortcuts(open: (dialog: 'palette' | 'help') => void, hasSingleKeys: boolean): void {
  const [, navigate] = useLocation();
  const { session } = useApi();
  const lastG = useRef(Number.NEGATIVE_INFINITY);
  useEffect(() => {
    const goTo = (letter: string) => {
      const page = NAVIGATION.find(({ shortcut }) => shortcut === letter);
      if (page !== undefined) navigate(page.path);
    };
    const onKey = (event: KeyboardEvent) => {
      if (isPaletteKey(event)) {
        event.preventDefault();
        return open('palette');
      }
      if (!hasSingleKeys || event.ctrlKey || event.metaKey || event.altKey || isBusy(event.target)) return;
      const isSecond = event.timeStamp - lastG.current < SEQUENCE_MS;
      lastG.current = event.key === 'g' && !isSecond ? event.timeStamp : Number.NEGATIVE_INFINITY;
      if (isSecond) return goTo(event.key);
      if (event.key === '?') return open('help');
      if (event.key === '/') {
        event.preventDefault();
        focusSearch(() => open('palette'));
      }
    };
    const onKeyUnlessKept = (event: KeyboardEvent) => {
      if (!session.isKept) onKey(event);
    };
    document.addEventListener('keydown', onKeyUnlessKept);
    return () => document.removeEventListener('keydown', onKeyUnlessKept);
  }, [navigate, session, open, hasSingleKeys]);
}

/** With Shift it is the browser's. Of an alphabet without `k`, such as the Cyrillic one, the letter at the same place counts. */
function isPaletteKey({ key, code, ctrlKey, metaKey, altKey, shiftKey }: KeyboardEvent): boolean {
  const isK = key.toLowerCase() === 'k' || (code === 'KeyK' && !/^[a-z]$/i.test(key));
  return (ctrlKey || metaKey) && !altKey && !shiftKey && isK;
}

function focusSearch(otherwise: () => void): void {
  const field = document.querySelector<HTMLInputElement>('main input[type=search]');
  if (field === null) otherwise();
  else field.select();
}

/** Whether the key press belongs to a text field or to a dialog. */
function isBusy(target: EventTarget | null): boolean {
  return (
    target instanceof Element &&
    target.closest('input, textarea, select, [contenteditable], [role=dialog], [role=menu]') !== null
  );
}
