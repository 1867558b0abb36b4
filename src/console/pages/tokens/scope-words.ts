import type { Scope } from '../../api/api-context.tsx';

/** A description of each scope, for a list. */
export const SCOPE_WORDS: Readonly<Record<Scope, string>> = {
  'keys:read': 'see keys, their live counters and statistics',
  'keys:write': 'create and change keys, apply plans to them',
  'keys:delete': 'delete keys',
  'keys:secret': 'see the secrets of keys',
  'keys:verify': 'try whether a request with a secret is allowed',
  'limits:write': 'reset live counters and give more room',
  'plans:read': 'see plans',
  'plans:write': 'create, change and delete plans',
  'usage:read': 'see usage over time',
  'audit:read': 'see the audit log',
  'config:write': 'apply a configuration',
  'tokens:write': 'list, create, change, rotate and revoke admin tokens, end sessions of people',
  'webhooks:read': 'see webhooks and their deliveries, follow events',
  'webhooks:write': 'create, change, rotate, test and delete webhooks',
};

interface Preset {
  readonly label: string;
  readonly about: string;
  readonly scopes: readonly Scope[];
}

/** Scopes that are often granted together, under the names of the gateway's presets. */
export const PRESETS: Readonly<Record<string, Preset>> = {
  'read-only': {
    label: 'Read only',
    about: 'sees keys, plans, usage and the audit log',
    scopes: ['keys:read', 'plans:read', 'usage:read', 'audit:read'],
  },
  support: {
    label: 'Support',
    about: 'the same, and gives consumers more room',
    scopes: ['keys:read', 'plans:read', 'usage:read', 'audit:read', 'limits:write'],
  },
  provisioning: {
    label: 'Provisioning',
    about: 'makes, changes and deletes keys, and never sees their secrets again',
    scopes: ['keys:read', 'keys:write', 'keys:delete', 'plans:read'],
  },
  ci: { label: 'CI', about: 'applies configurations', scopes: ['config:write'] },
  verifier: {
    label: 'Verifier',
    about: 'lets a service ask whether a consumer may make a request',
    scopes: ['keys:verify'],
  },
};

/** "Support", "everything", or the scopes themselves. */
export function scopeWords(scopes: readonly Scope[]): string {
  if (scopes.length === Object.keys(SCOPE_WORDS).length) return 'Everything';
  const preset = Object.values(PRESETS).find(
    (each) => each.scopes.length === scopes.length && each.scopes.every((scope) => scopes.includes(scope)),
  );
  return preset?.label ?? scopes.join(', ');
}
