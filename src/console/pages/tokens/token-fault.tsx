import { ManagementFault } from '../../../client/management-fault.ts';
import { faultSentence } from '../../api/fault-kind.ts';
import { Notice } from '../../components/states/notice.tsx';

/** The error of a form, unless the fields show it. */
export function TokenFault({ error }: { readonly error: unknown }) {
  if (error === undefined || (error instanceof ManagementFault && error.fields.length > 0)) return null;
  return <Notice tone="failed">{faultSentence(error)}</Notice>;
}
