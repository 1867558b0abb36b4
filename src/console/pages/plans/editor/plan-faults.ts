import { ManagementFault } from '../../../../client/management-fault.ts';
import { faultSentence } from '../../../api/fault-kind.ts';
import type { DraftFaults } from './plan-draft.ts';

/** What the gateway says about single fields. */
export function faultsOf(error: unknown): DraftFaults {
  if (!(error instanceof ManagementFault)) return {};
  if (error.code === 'plan_exists') return { rateLimitId: 'There is a plan with this id already.' };
  return Object.fromEntries(error.fields.map(({ field, message }) => [field, `It ${message}.`]));
}

/** What is wrong beside that; undefined where the fields say it all. */
export function leftOverFault(error: unknown): string | undefined {
  if (error === undefined || Object.keys(faultsOf(error)).length > 0) return undefined;
  return faultSentence(error);
}
