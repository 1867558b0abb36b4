import { ManagementFault } from '../../../../client/management-fault.ts';
import { faultSentence } from '../../../api/fault-kind.ts';
import { Notice } from '../../../components/states/notice.tsx';

/** Why a form could not be saved. Faults of single fields are shown beside the fields. */
export function FormFault({ error }: { readonly error: unknown }) {
  if (error === undefined) return null;
  const isOfFields = error instanceof ManagementFault && error.fields.length > 0;
  return <Notice tone="failed">{isOfFields ? 'Nothing was saved: see below.' : faultSentence(error)}</Notice>;
}
