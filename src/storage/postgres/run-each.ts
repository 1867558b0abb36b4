import { StoreBusy, StoreUnavailable } from '../../errors.ts';

/**
 * Runs the steps of a clean-up one after the other, also those after one that fails. Rejects at the end with the errors, and at once where
 * Postgres is unavailable.
 */
export async function runEach(steps: Iterable<() => Promise<unknown>>): Promise<void> {
  const errors: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      if (error instanceof StoreUnavailable && !(error instanceof StoreBusy)) throw error;
      errors.push(error);
    }
  }
  if (errors.length > 1) throw new AggregateError(errors, 'Several steps of a clean-up failed.');
  if (errors.length === 1) throw errors[0];
}
