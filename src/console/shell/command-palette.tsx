import { Autocomplete } from '@base-ui/react/autocomplete';
import { Dialog } from '@base-ui/react/dialog';
import { Search } from 'lucide-react';
import { useState } from 'react';
import { useLocation } from 'wouter';
import styles from './command-palette.module.css';
import { type Command, useCommands } from './use-commands.ts';

interface CommandPaletteProps {
  readonly onClose: () => void;
}

/** Finds pages, keys and plans by a part of their names, and opens them. */
export function CommandPalette({ onClose }: CommandPaletteProps) {
  const [text, setText] = useState('');
  const { groups, isSearching, isIncomplete } = useCommands(text);
  const [, navigate] = useLocation();
  const run = ({ href }: Command) => {
    onClose();
    navigate(href);
  };
  return (
    <Dialog.Root open onOpenChange={(open) => !open && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className={styles.backdrop} />
        <Dialog.Popup className={styles.popup} aria-label="Go to">
          <Autocomplete.Root
            open
            inline
            items={groups}
            filter={null}
            autoHighlight="always"
            keepHighlight
            value={text}
            onValueChange={(value, { reason }) => {
              // A chosen item is opened; its text does not become the input's.
              if (reason !== 'item-press') setText(value);
            }}
            itemToStringValue={({ label }: Command) => label}
          >
            <div className={styles.search}>
              <Search aria-hidden="true" />
              <Autocomplete.Input aria-label="Go to" placeholder="Find a key, a plan or a page…" />
              <kbd>Esc</kbd>
            </div>
            <Autocomplete.Empty className={styles.empty}>
              {isSearching ? 'Searching…' : isIncomplete ? null : 'Nothing has this in its name.'}
            </Autocomplete.Empty>
            {isIncomplete && (
              <p className={styles.empty} role="status">
                Keys or plans could not be searched.
              </p>
            )}
            <Autocomplete.List className={styles.list}>
              {(group: CommandGroup) => <Group key={group.value} group={group} onRun={run} />}
            </Autocomplete.List>
          </Autocomplete.Root>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

type CommandGroup = ReturnType<typeof useCommands>['groups'][number];

interface GroupProps {
  readonly group: CommandGroup;
  readonly onRun: (command: Command) => void;
}

function Group({ group, onRun }: GroupProps) {
  return (
    <Autocomplete.Group items={group.items}>
      <Autocomplete.GroupLabel className={styles.group}>{group.value}</Autocomplete.GroupLabel>
      <Autocomplete.Collection>
        {(command: Command) => (
          <Autocomplete.Item
            key={command.href}
            value={command}
            className={styles.item}
            onClick={() => onRun(command)}
          >
            <command.icon aria-hidden="true" />
            <bdi className={styles.label}>{command.label}</bdi>
            {command.detail !== undefined && <span className={styles.detail}>{command.detail}</span>}
          </Autocomplete.Item>
        )}
      </Autocomplete.Collection>
    </Autocomplete.Group>
  );
}
