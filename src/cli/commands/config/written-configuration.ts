import { InvalidConfiguration } from '../../../app/invalid-configuration.ts';
import type { paths } from '../../../client/management-api.ts';
import { ManagementFault } from '../../../client/management-fault.ts';
import { readObject } from '../../api/read-object.ts';
import { CommandFault } from '../../command-fault.ts';
import { shownCell } from '../../output/table.ts';

export type DiffBody = paths['/tollgate/config/diff']['post']['requestBody']['content']['application/json'];

/** The owner of a configuration, and whether applying it deletes what it does not contain. */
export interface OwnerOptions {
  readonly owner: string;
  readonly prune?: boolean;
}

/** The request body for a file. */
export async function bodyFor(file: string, { owner, prune }: OwnerOptions): Promise<DiffBody> {
  // The gateway checks the content: its version may know more fields than this command.
  return { config: (await readObject(file)) as DiffBody['config'], owner, ...(prune && { prune }) };
}

/** The number of plans, keys and webhooks of a configuration. Throws a `CommandFault` with all faults of its content. */
export async function checkedLocally(
  value: unknown,
): Promise<{ readonly plans: number; readonly keys: number; readonly webhooks: number }> {
  const { readConfigurationValue } = await import('../../../app/configuration-file.ts');
  try {
    // Only the faults are of interest, and they do not depend on case.
    const { plans, keys, webhooks } = readConfigurationValue(value, 'sensitive');
    return { plans: plans.length, keys: keys.length, webhooks: webhooks.length };
  } catch (error) {
    if (!(error instanceof InvalidConfiguration)) throw error;
    throw new CommandFault('usage', error.message, { cause: error });
  }
}

/** Waits for a call. If it fails, the error lists the faults by their paths in the file, or the conflicts, one a line. */
export async function inFile<Result>(call: Promise<Result>): Promise<Result> {
  return call.catch((error: unknown) => {
    if (!(error instanceof ManagementFault)) throw error;
    const { fields, details, message } = error;
    const conflicts = Array.isArray(details.conflicts) ? details.conflicts : [];
    if (fields.length === 0 && conflicts.length === 0) throw error;
    const lines = [
      ...fields.map(({ field, message: rule }) => shownCell(`  ${field.replace(/^config\./, '')}: ${rule}`)),
      ...conflicts.map(({ type, id, reason }) =>
        shownCell(`  ${type} ${id}: ${String(reason).replaceAll('_', ' ')}`),
      ),
    ];
    const kind = fields.length > 0 ? 'usage' : 'conflict';
    throw new CommandFault(kind, [message, ...lines].join('\n'), { cause: error });
  });
}
