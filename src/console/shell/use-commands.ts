import { Gauge, KeyRound, type LucideIcon } from 'lucide-react';
import { useDeferredValue } from 'react';
import { useScopes } from '../api/api-context.tsx';
import { useLive } from '../api/live.ts';
import { NAVIGATION } from '../routes.tsx';

/** An entry of the command palette: a page, a key or a plan. */
export interface Command {
  readonly label: string;
  readonly detail?: string | undefined;
  readonly icon: LucideIcon;
  readonly href: string;
}

interface CommandGroup {
  readonly value: string;
  readonly items: readonly Command[];
}

const MOST = 8;

/** The pages, keys and plans that match a text; without a text, the keys that were used last. */
export function useCommands(text: string): {
  readonly groups: readonly CommandGroup[];
  readonly isSearching: boolean;
  /** Keys or plans could not be read. */
  readonly isIncomplete: boolean;
} {
  const { can } = useScopes();
  // Deferred, so that the input stays responsive while the results render.
  const q = useDeferredValue(text.trim());
  const { keys, plans } = useFound(q);
  const wanted = q.toLowerCase();
  const groups: readonly CommandGroup[] = [
    {
      value: 'Pages',
      items: NAVIGATION.filter(({ label, scope }) => can(scope) && label.toLowerCase().includes(wanted)).map(
        ({ label, icon, path, shortcut }) => ({ label, icon, href: path, detail: `g ${shortcut}` }),
      ),
    },
    {
      value: 'Keys',
      items: (keys.data?.apiKeys ?? []).map(({ name, consumerApiKeyId, secretHint }) => ({
        label: name,
        detail: secretHint ?? undefined,
        icon: KeyRound,
        href: `/keys/${encodeURIComponent(consumerApiKeyId)}`,
      })),
    },
    {
      value: 'Plans',
      items: (plans.data?.rateLimits ?? []).map(({ rateLimitId, description }) => ({
        label: rateLimitId,
        detail: description === '' ? undefined : description,
        icon: Gauge,
        href: `/plans/${encodeURIComponent(rateLimitId)}`,
      })),
    },
  ];
  return {
    groups: groups.filter(({ items }) => items.length > 0),
    isSearching: [keys, plans].some(({ status }) => status === 'loading' || status === 'refreshing'),
    isIncomplete: [keys, plans].some(({ status }) => status === 'unavailable' || status === 'failed'),
  };
}

/** The keys and plans that match a text; without a text, the keys that were used last. */
function useFound(q: string) {
  const search = q === '' ? {} : { q };
  const keys = useLive(
    ['find-keys', q],
    (client, signal) =>
      client.GET('/consumer-api-key', {
        params: { query: { ...search, sort: 'lastUsedAt', order: 'desc', limit: MOST } },
        signal,
      }),
    { scope: 'keys:read', pollMs: false },
  );
  const plans = useLive(
    ['find-plans', q],
    (client, signal) => client.GET('/rate-limit', { params: { query: { ...search, limit: MOST } }, signal }),
    { scope: 'plans:read', pollMs: false },
  );
  return { keys, plans };
}
