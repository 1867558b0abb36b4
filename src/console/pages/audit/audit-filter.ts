import type { paths } from '../../../client/management-api.ts';
import { instantText } from '../../api/instant-text.ts';
import { ACTION_WORDS, type AuditAction } from './audit-words.ts';

type AuditQuery = NonNullable<paths['/tollgate/audit-log']['get']['parameters']['query']>;

/** Which entries are shown, by their names in the URL; an empty text: all. */
export interface AuditFilter {
  readonly action: AuditAction | '';
  readonly actorId: string;
  readonly targetId: string;
  /** The first and the last date, `YYYY-MM-DD` in the time zone of the browser. */
  readonly from: string;
  readonly to: string;
}

const DATE = /^\d{4}-\d{2}-\d{2}$/;

export function readAuditFilter(params: URLSearchParams): AuditFilter {
  const text = (name: string) => params.get(name) ?? '';
  const date = (name: string) => (DATE.test(text(name)) ? text(name) : '');
  const action = text('action');
  return {
    action: Object.hasOwn(ACTION_WORDS, action) ? (action as AuditAction) : '',
    actorId: text('actorId'),
    targetId: text('targetId'),
    from: date('from'),
    to: date('to'),
  };
}

/** The query of the management interface. */
export function auditQuery({ action, actorId, targetId, from, to }: AuditFilter): AuditQuery {
  return {
    ...(action !== '' && { action }),
    ...(actorId !== '' && { actorId }),
    ...(targetId !== '' && { targetId }),
    ...(from !== '' && { from: dateStart(from, 0) }),
    ...(to !== '' && { to: dateStart(to, 1) }),
  };
}

/** The first instant of a date, or of the one so many days later. */
function dateStart(text: string, days: number): string {
  const [year = 0, month = 1, day = 1] = text.split('-').map(Number);
  return instantText(new Date(year, month - 1, day + days));
}
