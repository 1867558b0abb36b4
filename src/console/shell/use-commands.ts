import { Gauge, KeyRound, type LucideIcon } from 'lucide-react';
import { useScopes } from '../api/api-context.tsx';
import { type Live, useLive } from '../api/live.ts';
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
  const q = text.trim();
  const { keys, plans } = useFound(q);
  const has = (shown: string | undefined) => shown?.toLowerCase().includes(q.toLowerCase()) === true;
  // While a search runs, keys and plans are those of an earlier text: Enter must not open one without this text.
  const ofThisText = (commands: readonly Command[], { status }: Live<unknown>) =>
    status === 'refreshing' ? commands.filter(({ label, detail }) => has(label) || has(detail)) : commands;
  const groups: readonly CommandGroup[] = [
    {
      value: 'Pages',
      items: NAVIGATION.filter(({ label, scope }) => can(scope) && has(label)).map(
        ({ label, icon, path, shortcut }) => ({ label, icon, href: path, detail: `g ${shortcut}` }),
      ),
    },
    {
      value: 'Keys',
      items: ofThisText(
        (keys.data?.apiKeys ?? []).map(({ name, consumerApiKeyId, secretHint }) => ({
          label: name,
          detail: secretHint ?? undefined,
          icon: KeyRound,
          href: `/keys/${encodeURIComponent(consumerApiKeyId)}`,
        })),
        keys,
      ),
    },
    {
      value: 'Plans',
      items: ofThisText(
        (plans.data?.rateLimits ?? []).map(({ rateLimitId, description }) => ({
          label: rateLimitId,
          detail: description === '' ? undefined : description,
          icon: Gauge,
          href: `/plans/${encodeURIComponent(rateLimitId)}`,
        })),
        plans,
      ),
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
