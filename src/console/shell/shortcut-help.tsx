import { useScopes } from '../api/api-context.tsx';
import { Dialog } from '../components/layout/dialog.tsx';
import { Facts } from '../components/layout/facts.tsx';
import { NAVIGATION } from '../routes.tsx';

/** All keyboard shortcuts. */
export function ShortcutHelp({ onClose }: { readonly onClose: () => void }) {
  const { can } = useScopes();
  const pages = NAVIGATION.filter(({ scope }) => scope === undefined || can(scope));
  return (
    <Dialog open onClose={onClose} title="Keyboard shortcuts">
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
