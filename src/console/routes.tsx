import {
  ChartColumn,
  Gauge,
  House,
  KeyRound,
  type LucideIcon,
  ScrollText,
  Server,
  ShieldCheck,
  Webhook,
} from 'lucide-react';
import { type ComponentType, lazy } from 'react';
import type { Scope } from './api/api-context.tsx';

interface PageProps {
  /** The parameters of the page's path. */
  readonly params: Readonly<Record<string, string | undefined>>;
}

interface Route {
  /** The path below the console's base; a segment that begins with a colon is a parameter. */
  readonly path: string;
  readonly page: ComponentType<PageProps>;
  /** The page's entry in the navigation, if it has one. */
  readonly entry?: NavigationEntry;
}

export interface NavigationEntry {
  readonly label: string;
  readonly icon: LucideIcon;
  /** The scope that the page needs. */
  readonly scope?: Scope;
  /** The second key of the page's shortcut, after `g`. */
  readonly shortcut: string;
}

/** All pages of the console. Each is imported when it is first opened. */
export const ROUTES: readonly Route[] = [
  {
    path: '/',
    page: lazy(() => import('./pages/overview-page.tsx').then((file) => ({ default: file.OverviewPage }))),
    entry: { label: 'Overview', icon: House, shortcut: 'o' },
  },
  {
    path: '/keys',
    page: lazy(() => import('./pages/keys-page.tsx').then((file) => ({ default: file.KeysPage }))),
    entry: { label: 'Keys', icon: KeyRound, scope: 'keys:read', shortcut: 'k' },
  },
  {
    path: '/keys/:consumerApiKeyId',
    page: lazy(() => import('./pages/key-page.tsx').then((file) => ({ default: file.KeyPage }))),
  },
  {
    path: '/plans',
    page: lazy(() => import('./pages/plans-page.tsx').then((file) => ({ default: file.PlansPage }))),
    entry: { label: 'Plans', icon: Gauge, scope: 'plans:read', shortcut: 'p' },
  },
  {
    path: '/plans/:rateLimitId',
    page: lazy(() => import('./pages/plan-page.tsx').then((file) => ({ default: file.PlanPage }))),
  },
  {
    path: '/usage',
    page: lazy(() => import('./pages/usage-page.tsx').then((file) => ({ default: file.UsagePage }))),
    entry: { label: 'Usage', icon: ChartColumn, scope: 'usage:read', shortcut: 'u' },
  },
  {
    path: '/webhooks',
    page: lazy(() => import('./pages/webhooks-page.tsx').then((file) => ({ default: file.WebhooksPage }))),
    entry: { label: 'Webhooks', icon: Webhook, scope: 'webhooks:read', shortcut: 'w' },
  },
  {
    path: '/webhooks/:webhookId',
    page: lazy(() => import('./pages/webhook-page.tsx').then((file) => ({ default: file.WebhookPage }))),
  },
  {
    path: '/audit',
    page: lazy(() => import('./pages/audit-page.tsx').then((file) => ({ default: file.AuditPage }))),
    entry: { label: 'Audit log', icon: ScrollText, scope: 'audit:read', shortcut: 'a' },
  },
  {
    path: '/tokens',
    page: lazy(() => import('./pages/tokens-page.tsx').then((file) => ({ default: file.TokensPage }))),
    entry: { label: 'Admin tokens', icon: ShieldCheck, scope: 'tokens:write', shortcut: 't' },
  },
  {
    path: '/system',
    page: lazy(() => import('./pages/system-page.tsx').then((file) => ({ default: file.SystemPage }))),
    entry: { label: 'System', icon: Server, scope: 'plans:read', shortcut: 's' },
  },
];

/** The pages in the navigation, in this order. */
export const NAVIGATION: readonly (NavigationEntry & { readonly path: string })[] = ROUTES.flatMap(
  ({ path, entry }) => (entry === undefined ? [] : [{ path, ...entry }]),
);
