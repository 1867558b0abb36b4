import type { components } from '../../../client/management-api.ts';
import type { Scope } from '../../api/api-context.tsx';
import { formatNumber } from '../../format/numbers.ts';

export type AuditEntry = components['schemas']['AuditEntry'];
export type AuditAction = AuditEntry['action'];

/** The actions as parts of a sentence: "Support changed a key". */
export const ACTION_WORDS: Readonly<Record<AuditAction, string>> = {
  'key.create': 'created a key',
  'key.update': 'changed a key',
  'key.delete': 'deleted a key',
  'key.import': 'imported a key',
  'key.find': 'searched a key by its secret',
  'key.rotate': 'rotated a key',
  'key.end-rotation': 'ended a rotation',
  'key.show-secret': 'saw the secret of a key',
  'key.offer-handover': 'made a hand-over link for a key',
  'key.revoke-handover': 'revoked a hand-over link of a key',
  'key.hand-over': 'opened a hand-over link of a key',
  'limits.reset': 'reset live counters',
  'limits.grant': 'gave a key more room',
  'plan.create': 'created a plan',
  'plan.update': 'changed a plan',
  'plan.delete': 'deleted a plan',
  'token.create': 'created an admin token',
  'token.update': 'changed an admin token',
  'token.delete': 'revoked an admin token',
  'token.rotate': 'rotated an admin token',
  'webhook.create': 'created a webhook',
  'webhook.update': 'changed a webhook',
  'webhook.delete': 'deleted a webhook',
  'webhook.rotate': 'rotated the secret of a webhook',
  'webhook.disable': 'disabled a webhook',
  'webhook.test': 'tested a webhook',
  'webhook.resend': 'sent a delivery again',
  'session.create': 'signed in',
  'session.end': 'ended a session',
  'job.create': 'began to change many keys',
  'job.cancel': 'ended a change of many keys',
  'config.apply': 'applied a configuration',
  'request.deny': 'was not allowed to',
};

export function actionWords(action: string): string {
  // A newer gateway may have more actions than this page knows.
  return Object.hasOwn(ACTION_WORDS, action) ? ACTION_WORDS[action as AuditAction] : action;
}

export function actorName({ type, name }: AuditEntry['actor']): string {
  return type === 'root' ? 'Root token' : name;
}

const ACTOR_TYPE_WORDS: Readonly<Record<AuditEntry['actor']['type'], string>> = {
  root: 'root token',
  token: 'admin token',
  person: 'person',
  program: 'program',
  config: 'configuration',
  key: 'consumer key',
  gateway: 'gateway',
};

/** What an actor is: names are chosen freely, and may be that of another one. */
export function actorTypeWords({ type }: AuditEntry['actor']): string {
  // A newer gateway may have more types than this page knows.
  return Object.hasOwn(ACTOR_TYPE_WORDS, type) ? ACTOR_TYPE_WORDS[type] : type;
}

/** The id of an actor for the filter; undefined if it has none. */
export function actorId({ type, adminTokenId, subject }: AuditEntry['actor']): string | undefined {
  return adminTokenId ?? subject ?? (type === 'root' || type === 'config' ? type : undefined);
}

interface TargetPage {
  readonly href: string;
  readonly scope: Scope;
}

/** The page of the target; undefined if it has none. */
export function targetPage({ type, id }: AuditEntry['target']): TargetPage | undefined {
  const path = encodeURIComponent(id);
  switch (type) {
    case 'key':
      return { href: `/keys/${path}`, scope: 'keys:read' };
    case 'plan':
      return { href: `/plans/${path}`, scope: 'plans:read' };
    case 'webhook':
      return { href: `/webhooks/${path}`, scope: 'webhooks:read' };
    case 'job':
      return { href: `/keys?job=${path}`, scope: 'keys:read' };
    default:
      return undefined;
  }
}

/** A short form of a field's value: texts as they are, other values as JSON. */
export function valueWords(value: unknown): string {
  if (value === undefined || value === null || value === '') return 'none';
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return formatNumber(value);
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value) && value.every((each) => typeof each === 'string'))
    return value.length === 0 ? 'none' : value.join(', ');
  return JSON.stringify(value);
}

/** "limit: 1000 → 2000", or "rateLimitId: gold" for a new record. Of several fields, the most telling one and the number of all. */
export function changesInShort({ changes }: AuditEntry): string {
  const fields = Object.entries(changes);
  const [first] = fields.toSorted((a, b) => rankOf(a) - rankOf(b));
  if (first === undefined) return '';
  const [field, { from, to }] = first;
  const value =
    from === null || from === undefined ? valueWords(to) : `${valueWords(from)} → ${valueWords(to)}`;
  const more = fields.length > 1 ? ` · ${fields.length} fields` : '';
  return `${field}: ${value}${more}`;
}

/** What decides most about a record comes first, and what names it, which the target says already, last. */
const MOST_TELLING = ['enabled', 'limit', 'rateLimitId', 'scopes', 'overrides', 'expiresAt', 'url', 'events'];
const LEAST_TELLING = ['name', 'description', 'createdAt', 'lastUpdated'];

function rankOf([field, { from, to }]: readonly [string, AuditEntry['changes'][string]]): number {
  // As every new record is.
  if (field === 'enabled' && to === true && (from === null || from === undefined)) return 1;
  const telling = MOST_TELLING.indexOf(field);
  if (telling !== -1) return telling - MOST_TELLING.length;
  return LEAST_TELLING.includes(field) ? 1 : 0;
}
