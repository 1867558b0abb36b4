import { useScopes } from '../api/api-context.tsx';
import { Checkbox } from '../components/forms/field.tsx';
import { Dialog } from '../components/layout/dialog.tsx';
import { Facts } from '../components/layout/facts.tsx';
import { NAVIGATION } from '../routes.tsx';

interface ShortcutHelpProps {
  readonly hasSingleKeys: boolean;
  readonly onSingleKeys: (isOn: boolean) => void;
  readonly onClose: () => void;
}

/** All keyboard shortcuts, and a switch for those of single keys. */
export function ShortcutHelp({ hasSingleKeys, onSingleKeys, onClose }: ShortcutHelpProps) {
  const { can } = useScopes();
  const pages = NAVIGATION.filter(({ scope }) => can(scope));
  return (
    <Dialog onClose={onClose} title="Keyboard shortcuts">
      <Facts
        facts={[
          ['Find a key, a plan or a page', <Keys key="find" keys={['Ctrl', 'K']} />],
          ['Search in this list', <Keys key="search" keys={['/']} />],
          ...pages.map(
            ({ label, shortcut }) => [label, <Keys key={shortcut} keys={['g', shortcut]} />] as const,
          ),
          ['This help', <Keys key="help" keys={['?']} />],
        ]}
      />
      <Checkbox
        label="Shortcuts of single keys"
        hint="When they are off, only Ctrl K is left. This browser keeps the choice."
        checked={hasSingleKeys}
        onChange={({ target }) => onSingleKeys(target.checked)}
      />
    </Dialog>
  );
}

function Keys({ keys }: { readonly keys: readonly string[] }) {
  return keys.map((key, index) => (
    <span key={key}>
      {index > 0 && ' '}
      <kbd>{key}</kbd>
    </span>
  ));
}
