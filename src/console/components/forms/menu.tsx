import { Menu as BaseMenu } from '@base-ui/react/menu';
import { Ellipsis, type LucideIcon } from 'lucide-react';
import type { ReactElement } from 'react';
import { classes } from '../layout/classes.ts';
import { Button } from './button.tsx';
import styles from './menu.module.css';

export interface MenuItem {
  readonly label: string;
  readonly icon?: LucideIcon;
  readonly onSelect: () => void;
  readonly danger?: boolean;
}

interface MenuProps {
  /** The button that opens the menu. */
  readonly trigger: ReactElement;
  readonly items: readonly MenuItem[];
}

export function Menu({ trigger, items }: MenuProps) {
  return (
    <BaseMenu.Root>
      <BaseMenu.Trigger render={trigger} />
      <BaseMenu.Portal>
        <BaseMenu.Positioner className={styles.positioner} sideOffset={4} align="end">
          <BaseMenu.Popup className={styles.popup}>
            {items.map(({ label, icon: Icon, onSelect, danger = false }) => (
              <BaseMenu.Item
                key={label}
                className={classes(styles.item, danger && styles.danger)}
                onClick={onSelect}
              >
                {Icon !== undefined && <Icon aria-hidden="true" />}
                {label}
              </BaseMenu.Item>
            ))}
          </BaseMenu.Popup>
        </BaseMenu.Positioner>
      </BaseMenu.Portal>
    </BaseMenu.Root>
  );
}

/** The rarer actions of a page, beside the buttons for the usual ones. */
export function MoreActions({ items }: Pick<MenuProps, 'items'>) {
  const trigger = (
    <Button icon aria-label="More actions">
      <Ellipsis aria-hidden="true" />
    </Button>
  );
  return <Menu trigger={trigger} items={items} />;
}
