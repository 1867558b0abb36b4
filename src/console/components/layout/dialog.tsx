import { Dialog as BaseDialog } from '@base-ui/react/dialog';
import { X } from 'lucide-react';
import { type ReactNode, useEffect, useState } from 'react';
import { Button } from '../forms/button.tsx';
import { classes } from './classes.ts';
import styles from './dialog.module.css';

interface DialogProps {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly title: string;
  /** What it is about, or what will happen; read out when the dialog opens. */
  readonly description?: ReactNode;
  readonly wide?: boolean;
  /** False: neither Escape nor a click beside it closes the dialog, for what is shown only once. */
  readonly dismissible?: boolean;
  readonly children: ReactNode;
}

/** A modal dialog. It keeps the focus, and gives it back to where it was. */
export function Dialog(props: DialogProps) {
  const { open, onClose, title, description, wide = false, dismissible = true, children } = props;
  useFocusGivenBack();
  return (
    <BaseDialog.Root
      open={open}
      disablePointerDismissal={!dismissible}
      onOpenChange={(next, { reason }) => {
        if (!next && (dismissible || reason !== 'escape-key')) onClose();
      }}
    >
      <BaseDialog.Portal>
        <BaseDialog.Backdrop className={styles.backdrop} />
        <BaseDialog.Popup className={classes(styles.popup, wide && styles.wide)}>
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

/** A dialog that is taken out of the page while it is open gives the focus back as well: to the button, or that of the menu, that opened it. */
function useFocusGivenBack(): void {
  const [opener] = useState(() => {
    const { activeElement } = document;
    const menu = activeElement?.closest('[role="menu"]')?.getAttribute('aria-labelledby');
    return menu == null ? activeElement : document.getElementById(menu);
  });
  useEffect(
    () => () => {
      if (opener instanceof HTMLElement) opener.focus();
    },
    [opener],
  );
}

/** The row of buttons at the end of a dialog or form. */
export function DialogActions({ children }: { readonly children: ReactNode }) {
  return <div className={styles.actions}>{children}</div>;
}
