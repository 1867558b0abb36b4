import { Dialog as BaseDialog } from '@base-ui/react/dialog';
import { X } from 'lucide-react';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { useKeptSession } from '../../api/api-context.tsx';
import { Button } from '../forms/button.tsx';
import { classes } from './classes.ts';
import styles from './dialog.module.css';

interface DialogProps {
  readonly onClose: () => void;
  readonly title: string;
  /** What the dialog is about, or what will happen. It is read out when the dialog opens. */
  readonly description?: ReactNode;
  readonly wide?: boolean;
  /** False: neither Escape, a click outside nor Back closes the dialog, because it makes or shows what is shown only once. */
  readonly dismissible?: boolean;
  readonly children: ReactNode;
}

/**
 * A modal dialog, open while it is rendered. It traps the focus, and returns it when it closes. A click outside closes it only if it has no form:
 * what was typed would be lost.
 */
export function Dialog(props: DialogProps) {
  const { onClose, title, description, wide = false, dismissible = true, children } = props;
  const popup = useRef<HTMLDivElement>(null);
  useFocusGivenBack();
  useKeptSession(!dismissible);
  return (
    <BaseDialog.Root
      open
      disablePointerDismissal={!dismissible}
      onOpenChange={(next, { reason }) => {
        if (next || (!dismissible && reason === 'escape-key')) return;
        if (reason === 'outside-press' && popup.current?.querySelector('form')) return;
        onClose();
      }}
    >
      <BaseDialog.Portal>
        <BaseDialog.Backdrop className={styles.backdrop} />
        {/* Its own way gives the focus to the button of an earlier dialog where that of this one has gone. */}
        <BaseDialog.Popup
          ref={popup}
          className={classes(styles.popup, wide && styles.wide)}
          finalFocus={false}
        >
          <div className={styles.head}>
            <BaseDialog.Title className={styles.title}>{title}</BaseDialog.Title>
            {dismissible && (
              <BaseDialog.Close render={<Button look="quiet" small icon aria-label="Close" />}>
                <X aria-hidden="true" />
              </BaseDialog.Close>
            )}
          </div>
          <div className={styles.body}>
            {description !== undefined && (
              <BaseDialog.Description className={styles.description} render={<div />}>
                {description}
              </BaseDialog.Description>
            )}
            {children}
          </div>
        </BaseDialog.Popup>
      </BaseDialog.Portal>
    </BaseDialog.Root>
  );
}

/** Of each open dialog, where it gives the focus back: to the first of these that is still there. */
const openDialogs: (readonly Element[])[] = [];

/**
 * Returns the focus when the dialog is unmounted: to the button that opened it, or to that of the menu that did; to what opened the dialog that
 * it took the place of; if all of these have gone, to the page.
 */
function useFocusGivenBack(): void {
  const [openers] = useState(() => [...openersNow(), ...(openDialogs.at(-1) ?? [])]);
  useEffect(() => {
    openDialogs.push(openers);
    return () => {
      openDialogs.splice(openDialogs.indexOf(openers), 1);
      const opener = openers.find(({ isConnected }) => isConnected);
      const target = opener ?? document.querySelector('main');
      if (target instanceof HTMLElement) target.focus({ preventScroll: opener === undefined });
    };
  }, [openers]);
}

function openersNow(): readonly Element[] {
  const { activeElement, body } = document;
  const menu = activeElement?.closest('[role="menu"]')?.getAttribute('aria-labelledby');
  const opener = menu == null ? activeElement : document.getElementById(menu);
  // A button that was disabled while it had the focus has left it to the body.
  return opener === null || opener === body ? [] : [opener];
}

/** The row of buttons at the end of a dialog or form. */
export function DialogActions({ children }: { readonly children: ReactNode }) {
  return <div className={styles.actions}>{children}</div>;
}

export interface SubmitActionsProps {
  readonly submit: string;
  /** In place of `submit` while the form is being sent. */
  readonly pending?: string;
  readonly isPending: boolean;
  readonly isDanger?: boolean;
  /** The form can't be left while it is being sent: the response has a secret that is shown only once. */
  readonly makesSecret?: boolean;
  readonly cancel?: string;
  readonly onCancel: () => void;
}

/** The buttons of a form in a dialog: leave it, or submit it. */
export function SubmitActions(props: SubmitActionsProps) {
  const { submit, pending = submit, isPending, isDanger = false, cancel = 'Cancel', onCancel } = props;
  const { makesSecret = false } = props;
  return (
    <DialogActions>
      <Button onClick={onCancel} disabled={makesSecret && isPending}>
        {cancel}
      </Button>
      <Button look={isDanger ? 'danger' : 'primary'} type="submit" aria-disabled={isPending}>
        {isPending ? pending : submit}
      </Button>
    </DialogActions>
  );
}
