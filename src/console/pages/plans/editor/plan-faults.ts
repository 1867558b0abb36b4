import { ManagementFault } from '../../../../client/management-fault.ts';
import { faultSentence } from '../../../api/fault-kind.ts';
import type { DraftFaults } from './plan-draft.ts';

/** The gateway's messages about single fields. */
export function faultsOf(error: unknown): DraftFaults {
  if (!(error instanceof ManagementFault)) return {};
  if (error.code === 'plan_exists') return { rateLimitId: 'There is a plan with this id already.' };
  return Object.fromEntries(error.fields.map(({ field, message }) => [field, `It ${message}.`]));
}

/** The message of an error that is not about single fields; undefined if the fields have all messages. */
export function leftOverFault(error: unknown): string | undefined {
  if (error === undefined || Object.keys(faultsOf(error)).length > 0) return undefined;
  return faultSentence(error);
}
