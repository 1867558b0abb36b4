import type { ReactNode } from 'react';
import type { FaultKind } from '../../api/fault-kind.ts';
import { SubmitActions, type SubmitActionsProps } from '../layout/dialog.tsx';
import { Notice } from '../states/notice.tsx';
import { Form } from './form.tsx';
import { FormFault } from './form-fault.tsx';

interface ChangeFormProps extends Omit<SubmitActionsProps, 'isPending'> {
  /** What `useChange` knows of the change that the form makes. */
  readonly change: {
    readonly isPending: boolean;
    readonly error: unknown;
    readonly errorKind: FaultKind | undefined;
  };
  /** The name of a record that is saved only as it was when the form opened, such as "token". */
  readonly record?: string;
  readonly onSubmit: () => unknown;
  readonly children?: ReactNode;
}

/** The form of a dialog that makes a change: why it has failed, the fields, and the buttons. */
export function ChangeForm({ change, record, onSubmit, children, ...actions }: ChangeFormProps) {
  return (
    <Form onSubmit={onSubmit}>
      {record !== undefined && change.errorKind === 'conflict' ? (
        <Notice tone="failed">
          This {record} has changed since you opened it, by another administrator or by an earlier attempt of
          yours to save. This attempt saved nothing: close this and open it again to see what it is now.
        </Notice>
      ) : (
        <FormFault error={change.error} />
      )}
      {children}
      <SubmitActions isPending={change.isPending} {...actions} />
    </Form>
  );
}
