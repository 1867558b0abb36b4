import type { Command } from 'commander';
import type { components } from '../../../client/management-api.ts';
import type { ManagementClient } from '../../../client/management-client.ts';
import { keyIdOf } from '../../api/key-by-name.ts';
import { CommandFault } from '../../command-fault.ts';
import { collect, instant } from '../../option-values.ts';
import { type KeyFilterOptions, keyFilterOf } from './key-filter-options.ts';

export type BulkRequest = components['schemas']['ChangeConsumerKeysRequest'];
type Action = BulkRequest['action'];

/** The options with what an action changes. */
interface ActionOptions {
  readonly editTag?: readonly string[];
  readonly toPlan?: string;
  readonly expires?: string;
  readonly clear?: boolean;
  readonly override?: string;
}

export interface BulkOptions extends KeyFilterOptions, ActionOptions {
  readonly everyKey?: boolean;
}

/** The options that each action takes. It needs one of them, but for `clear-override`. */
const OPTIONS_OF_ACTION: Readonly<Record<Action, readonly (keyof ActionOptions)[]>> = {
  enable: [],
  disable: [],
  delete: [],
  'add-tags': ['editTag'],
  'remove-tags': ['editTag'],
  'set-plan': ['toPlan', 'clear'],
  'set-expiry': ['expires', 'clear'],
  'clear-override': ['override'],
};
const ACTION_OPTIONS = ['editTag', 'toPlan', 'expires', 'clear', 'override'] as const;
export const BULK_ACTIONS = Object.keys(OPTIONS_OF_ACTION);

/** Adds the options of an action. They have other names than those of the filter, so that neither is taken for the other. */
export function actionOptions(command: Command): Command {
  return command
    .option('--every-key', 'in place of a filter or of keys')
    .option('--edit-tag <tag>', 'for add-tags and remove-tags: the tag; repeated: several', collect)
    .option('--to-plan <id>', 'for set-plan: the plan that the keys are bound to')
    .option('--expires <when>', 'for set-expiry: instant in UTC, or from now: 30d, 12h')
    .option('--override <limit>', 'for clear-override: only of this limit')
    .option('--clear', 'for set-plan and set-expiry: take the plan or the end away');
}

/** What the command line requests. Throws if it does not choose keys in exactly one way, or lacks what the action needs. */
export async function bulkRequestOf(
  client: ManagementClient,
  [word = '', ...keys]: readonly string[],
  options: BulkOptions,
): Promise<BulkRequest> {
  // The argument has these choices.
  const action = word as Action;
  requireOptionsOf(action, options);
  const filter = keyFilterOf(options);
  const ways = [keys.length > 0, Object.keys(filter).length > 0, options.everyKey === true];
  if (ways.filter(Boolean).length !== 1)
    throw new CommandFault('usage', 'Name keys, or give a filter, or --every-key: one of the three.');
  const request = { action, ...fieldsOf(action, options) };
  if (keys.length === 0) return { ...request, filter };
  const ids: string[] = [];
  for (const key of keys) ids.push(await keyIdOf(client, key));
  return { ...request, ids };
}

function requireOptionsOf(action: Action, options: ActionOptions): void {
  const taken = OPTIONS_OF_ACTION[action];
  const given = ACTION_OPTIONS.filter((option) => options[option] !== undefined);
  const foreign = given.find((option) => !taken.includes(option));
  if (foreign !== undefined)
    throw new CommandFault('usage', `${flagOf(foreign)} is not for ${action}; a filter has other options.`);
  if (given.length > 1)
    throw new CommandFault('usage', `${given.map(flagOf).join(' and ')} exclude each other.`);
  if (given.length === 0 && taken.length > 0 && action !== 'clear-override')
    throw new CommandFault('usage', `${action} needs ${taken.map(flagOf).join(' or ')}.`);
}

function flagOf(option: keyof ActionOptions): string {
  return `--${option.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function fieldsOf(
  action: Action,
  { editTag, toPlan, expires, override }: ActionOptions,
): Partial<BulkRequest> {
  switch (action) {
    case 'add-tags':
    case 'remove-tags':
      return { tags: [...(editTag ?? [])] };
    case 'set-plan':
      return { rateLimitId: toPlan ?? null };
    case 'set-expiry':
      return { expiresAt: expires === undefined ? null : instant(expires, 'from now') };
    case 'clear-override':
      return override === undefined ? {} : { limitId: override };
    case 'enable':
    case 'disable':
    case 'delete':
      return {};
  }
}
