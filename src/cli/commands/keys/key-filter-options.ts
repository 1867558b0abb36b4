import type { Command } from 'commander';
import { definedFields } from '../../../platform/defined-fields.ts';
import { collect } from '../../option-values.ts';

/** The options that choose keys. */
export interface KeyFilterOptions {
  readonly plan?: string;
  readonly tag?: readonly string[];
  readonly externalId?: string;
  readonly search?: string;
  readonly status?: string;
}

/** Adds the options that choose keys. */
export function filtered(command: Command): Command {
  return command
    .option('--search <text>', 'only keys with this in their name, external id, id or hint')
    .option(
      '--status <status>',
      'only active, disabled, expired or expiring; several with commas between them',
    )
    .option('--plan <id>', 'only keys that are bound to this plan')
    .option('--tag <tag>', 'only keys with this tag; repeated: with all of them', collect)
    .option('--external-id <id>', 'only keys of this owner in your own system');
}

/** The parameters of the list of keys for these options. */
export function keyFilterOf({ plan, tag, externalId, search, status }: KeyFilterOptions) {
  return definedFields({ q: search, status, rateLimitId: plan, tag: tag && [...tag], externalId });
}
