// The room `permissions`: who makes a management request, and what it needs to be allowed.
// In: the scopes, presets and tags that a credential was given, and the scope that an endpoint needs.
// Out: a `Principal`, the same for every kind of credential, and the first scope that it lacks.

/** The permissions of admin tokens. Every endpoint of the management interface names the scopes that it needs. */
export const SCOPES = [
  'keys:read',
  'keys:write',
  'keys:delete',
  'keys:secret',
  'keys:verify',
  'limits:write',
  'plans:read',
  'plans:write',
  'usage:read',
  'audit:read',
  'config:write',
  'tokens:write',
  'webhooks:read',
  'webhooks:write',
] as const;

export type Scope = (typeof SCOPES)[number];

/** Names for scopes that are often granted together. */
export const PRESETS = {
  'read-only': ['keys:read', 'plans:read', 'usage:read', 'audit:read'],
  support: ['keys:read', 'plans:read', 'usage:read', 'audit:read', 'limits:write'],
  provisioning: ['keys:read', 'keys:write', 'keys:delete', 'plans:read'],
  ci: ['config:write'],
  verifier: ['keys:verify'],
} as const satisfies Readonly<Record<string, readonly Scope[]>>;

export type Preset = keyof typeof PRESETS;

/** Replaces presets by their scopes. The result has each scope once, in the order of `SCOPES`. */
export function expandScopes(granted: readonly (Scope | Preset)[]): readonly Scope[] {
  const all = new Set(granted.flatMap((name): readonly Scope[] => (isPreset(name) ? PRESETS[name] : [name])));
  return SCOPES.filter((scope) => all.has(scope));
}

function isPreset(name: Scope | Preset): name is Preset {
  return Object.hasOwn(PRESETS, name);
}
