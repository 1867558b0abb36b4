import type { paths } from '../../../client/management-api.ts';
import { instantText } from '../../api/instant-text.ts';
import { DATE, dateStart } from '../../format/date-text.ts';
import { ACTION_WORDS, type AuditAction } from './audit-words.ts';

type AuditQuery = NonNullable<paths['/tollgate/audit-log']['get']['parameters']['query']>;

/** The filters of the audit log, by their names in the URL. An empty text does not filter. */
export interface AuditFilter {
  readonly action: AuditAction | '';
  readonly actorId: string;
  readonly targetId: string;
  /** The first and the last date, `YYYY-MM-DD` in the time zone of the browser. */
  readonly from: string;
  readonly to: string;
}

export const NO_FILTER = { action: '', actorId: '', targetId: '', from: '', to: '' } satisfies AuditFilter;

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
    ...(from !== '' && { from: instantText(dateStart(from, 0)) }),
    ...(to !== '' && { to: instantText(dateStart(to, 1)) }),
  };
}
