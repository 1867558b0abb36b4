import { useEffect, useRef } from 'react';
import { ManagementFault } from '../../../../client/management-fault.ts';
import { showFirstFault } from '../../../components/forms/form.tsx';
import type { DraftFaults } from './plan-draft.ts';

/** The gateway's messages about single fields. */
export function faultsOf(error: unknown): DraftFaults {
  if (!(error instanceof ManagementFault)) return {};
  if (error.code === 'plan_exists') return { rateLimitId: 'There is a plan with this id already.' };
  return Object.fromEntries(error.fields.map(({ field, message }) => [field, `It ${message}.`]));
}

/** The error, if it is not about single fields; undefined if the fields have all its messages. */
export function leftOverFault(error: unknown): unknown {
  return Object.keys(faultsOf(error)).length > 0 ? undefined : error;
}

/**
 * The ref of the form. Its first field with a fault gets the focus when `faults` of the draft were found, or the gateway has responded with
 * `error`: the button may be far below.
 */
export function useShownFault(faults: DraftFaults, error?: unknown) {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (Object.keys(faults).length > 0) showFirstFault(form.current);
  }, [faults]);
  useEffect(() => {
    if (error !== undefined) showFirstFault(form.current);
  }, [error]);
  return form;
}
