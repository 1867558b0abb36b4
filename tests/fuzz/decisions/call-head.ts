import type { Original } from './original.ts';

/** A message of a client that is still to be spoilt. */
export interface CallHead {
  method: string;
  target: string;
  version: string;
  fields: [name: string, value: string][];
  body: string;
}

export const DIALECTS = ['original', 'original-url', 'forwarded', 'envoy'] as const;
export type Dialect = (typeof DIALECTS)[number];

/** The fields of a dialect: the one with the method, and the one with the target. */
export const FIELDS: Readonly<Record<Exclude<Dialect, 'envoy'>, readonly [string, string]>> = {
  original: ['X-Original-Method', 'X-Original-URI'],
  'original-url': ['X-Original-Method', 'X-Original-URL'],
  forwarded: ['X-Forwarded-Method', 'X-Forwarded-Uri'],
};

/** The request as the consumer sends it through the proxy. */
export function proxiedHead(original: Original, secret: string): CallHead {
  const { method, path } = original;
  return { method, target: path, version: '1.1', fields: fieldsOf(original, secret), body: '' };
}

/** The call of a gateway about the request. */
export function callHead(
  original: Original,
  secret: string,
  {
    dialect,
    callMethod,
    token,
  }: { readonly dialect: Dialect; readonly callMethod: string; readonly token: string },
): CallHead {
  const fields = [...fieldsOf(original, secret), ['Tollgate-Authorize-Token', token] as [string, string]];
  const { method, path } = original;
  const rest = { version: '1.1', fields, body: '' };
  if (dialect === 'envoy') return { method, target: `/authorize/envoy${path}`, ...rest };
  const [methodField, targetField] = FIELDS[dialect];
  const target = dialect === 'original-url' ? `https://api.example.com:8443${path}` : path;
  fields.push([methodField, method], [targetField, target]);
  return { method: callMethod, target: `/authorize/${dialect}`, ...rest };
}

function fieldsOf(original: Original, secret: string): [string, string][] {
  const fields: [string, string][] = [
    ['Host', 'api.example.com'],
    ['X-Forwarded-For', original.address],
  ];
  if (original.credential !== 'none') fields.push(credentialField(original.presented, secret));
  if (original.customerId !== undefined) fields.push(['X-Customer-Id', original.customerId]);
  if (original.origin !== undefined) fields.push(['Origin', original.origin]);
  if (original.isPreflight) fields.push(['Access-Control-Request-Method', 'POST']);
  return fields;
}

function credentialField(presented: Original['presented'], secret: string): [string, string] {
  switch (presented) {
    case 'bearer':
      return ['Authorization', `Bearer ${secret}`];
    case 'lower case bearer':
      return ['authorization', `bearer ${secret}`];
    case 'x-api-key':
      return ['x-api-key', secret];
    case 'basic':
      return ['Authorization', `Basic ${secret}`];
  }
}

/** The bytes of a message, one character a byte. */
export function messageOf({ method, target, version, fields, body }: CallHead): string {
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return `${method} ${target} HTTP/${version}\r\n${lines}\r\n${body}`;
}
