import { useEffect, useRef } from 'react';
import { ManagementFault } from '../../../client/management-fault.ts';
import { faultSentence } from '../../api/fault-kind.ts';
import { Notice } from '../states/notice.tsx';
import { showFirstFault } from './form.tsx';

/**
 * Why a form could not be saved, in sight although the button that was pressed may be far below. Faults of single fields are shown beside the
 * fields, the first of which has the focus.
 */
export function FormFault({ error }: { readonly error: unknown }) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    element.current?.scrollIntoView({ block: 'nearest' });
    if (isOfFields(error)) showFirstFault(element.current?.closest('form'));
  }, [error]);
  if (error === undefined) return null;
  return (
    <div ref={element}>
      <Notice tone="failed">
        {isOfFields(error) ? 'Nothing was saved: see below.' : faultSentence(error)}
      </Notice>
    </div>
  );
}

function isOfFields(error: unknown): boolean {
  return (
    error instanceof ManagementFault && (error.fields.length > 0 || error.code === 'webhook_url_not_allowed')
  );
}
