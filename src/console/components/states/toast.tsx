import { Toast } from '@base-ui/react/toast';
import { CircleCheck, CircleX, X } from 'lucide-react';
import { Button } from '../forms/button.tsx';
import styles from './toast.module.css';

const manager = Toast.createToastManager();

/** Announces the result of an action, to screen readers as well. A failure stays until it is closed. */
export const toast = {
  done: (title: string, description?: string) =>
    manager.add({ title, ...(description !== undefined && { description }), type: 'done', timeout: 6000 }),
  failed: (title: string, description?: string) =>
    manager.add({
      title,
      ...(description !== undefined && { description }),
      type: 'failed',
      timeout: 0,
      priority: 'high',
    }),
  closeAll: () => manager.close(),
} as const;

/** The region where toasts appear. Rendered once, around the page. */
export function ToastRegion() {
  return (
    <Toast.Provider toastManager={manager}>
      <Toast.Portal>
        <Toast.Viewport className={styles.viewport} aria-label="Notifications">
          <Toasts />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  );
}

function Toasts() {
  const { toasts } = Toast.useToastManager();
  return toasts.map((each) => (
    <Toast.Root key={each.id} toast={each} className={styles.toast}>
      <Toast.Content className={styles.content}>
        {each.type === 'failed' ? (
          <CircleX data-tone="failed" aria-hidden="true" />
        ) : (
          <CircleCheck aria-hidden="true" />
        )}
        <Toast.Title className={styles.title} />
        <Toast.Description className={styles.description} />
        <Toast.Close
          className={styles.close}
          render={<Button look="quiet" small icon aria-label="Close this notification" />}
        >
          <X aria-hidden="true" />
        </Toast.Close>
      </Toast.Content>
    </Toast.Root>
  ));
}
