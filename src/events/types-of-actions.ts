import type { AuditAction } from '../audit/audit-entry.ts';
import type { EventType } from './event-types.ts';

/** The type of the event for each audited action; null for actions that change nothing. */
export const TYPES_OF_ACTIONS: Readonly<Record<AuditAction, EventType | null>> = {
  'key.create': 'tollgate.key.created',
  'key.update': 'tollgate.key.updated',
  'key.delete': 'tollgate.key.deleted',
  'key.import': 'tollgate.key.created',
  'key.find': null,
  'key.rotate': 'tollgate.key.rotated',
  'key.end-rotation': 'tollgate.key.rotation_ended',
  'key.show-secret': null,
  'limits.reset': 'tollgate.limit.reset',
  'limits.grant': 'tollgate.limit.granted',
  'plan.create': 'tollgate.plan.created',
  'plan.update': 'tollgate.plan.updated',
  'plan.delete': 'tollgate.plan.deleted',
  'token.create': 'tollgate.admin_token.created',
  'token.update': 'tollgate.admin_token.updated',
  'token.delete': 'tollgate.admin_token.deleted',
  'token.rotate': 'tollgate.admin_token.rotated',
  'webhook.create': 'tollgate.webhook.created',
  'webhook.update': 'tollgate.webhook.updated',
  'webhook.delete': 'tollgate.webhook.deleted',
  'webhook.rotate': 'tollgate.webhook.rotated',
  'webhook.disable': 'tollgate.webhook.disabled',
  'webhook.test': null,
  'webhook.resend': null,
  'job.create': null,
  'job.cancel': null,
  'config.apply': 'tollgate.config.applied',
  'request.deny': null,
};
