/** What an admin token may be allowed to do. Every endpoint of the management interface names the one that it needs. */
export const SCOPES = [
  'keys:read',
  'keys:write',
  'keys:delete',
  'keys:secret',
  'limits:write',
  'plans:read',
  'plans:write',
  'usage:read',
  'audit:read',
  'config:write',
  'tokens:write',
] as const;

export type Scope = (typeof SCOPES)[number];
