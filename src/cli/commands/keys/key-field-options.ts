import type { Command } from 'commander';
import type { paths } from '../../../client/management-api.ts';
import { readFields } from '../../api/read-object.ts';
import { CommandFault } from '../../command-fault.ts';
import { collect, instant, jsonObject } from '../../option-values.ts';

/** The fields of a key that an update may change. */
export type KeyChange =
  paths['/consumer-api-key/{consumerApiKeyId}']['patch']['requestBody']['content']['application/json'];

export interface KeyFieldOptions {
  readonly plan?: string;
  readonly expires?: string;
  readonly externalId?: string;
  readonly tag?: readonly string[];
  readonly metadata?: Record<string, unknown>;
  readonly allowedIp?: readonly string[];
  readonly allowedOrigin?: readonly string[];
  readonly override?: readonly string[];
  readonly file?: string;
  /** Only of an update. */
  readonly clear?: readonly string[];
}

/** Adds the options of the fields that create and update share. */
export function keyFieldOptions(command: Command): Command {
  return command
    .option('--plan <id>', 'the rate limit plan that applies')
    .option('--expires <when>', 'instant in UTC, or from now: 30d, 12h')
    .option('--external-id <id>', 'names the owner in your own system')
    .option('--tag <tag>', 'a tag; repeated: several', collect)
    .option('--metadata <json>', 'a JSON object to keep with the key', jsonObject)
    .option(
      '--allowed-ip <network>',
      'address or network from which alone the key may be used; repeated: several',
      collect,
    )
    .option(
      '--allowed-origin <origin>',
      'origin of a web page in which alone the key may be used; repeated: several',
      collect,
    )
    .option(
      '--override <limit>',
      'a limit of this key alone: main=5000, or until an instant: main=5000@2027-01-01T00:00:00Z; repeated: several',
      collect,
    )
    .option(
      '-f, --file <path>',
      'fields of the management interface in JSON or YAML, - for standard input; options go before it',
    );
}

/** What `keys show` prints beside the id and the fields that can be written. */
const READ_ONLY = [
  ...['createdAt', 'lastUpdated', 'managedBy'],
  ...['rotation', 'secretHint', 'lastUsedAt', 'usage'],
];

/** The fields that the options describe, and the id that the file has. The gateway checks the content of a file, and names its faults. */
export async function keyFieldsOf(options: KeyFieldOptions): Promise<Record<string, unknown>> {
  const { plan, expires, externalId, tag, metadata, allowedIp, allowedOrigin, override } = options;
  const { file, clear = [] } = options;
  const fields: KeyChange = {
    ...(plan !== undefined && { rateLimitId: plan }),
    ...(expires !== undefined && { expiresAt: instant(expires, 'from now') }),
    ...(externalId !== undefined && { externalId }),
    ...(tag !== undefined && { tags: [...tag] }),
    ...(metadata !== undefined && { metadata: metadata as Record<string, never> }),
    ...(allowedIp !== undefined && { allowedIps: [...allowedIp] }),
    ...(allowedOrigin !== undefined && { allowedOrigins: [...allowedOrigin] }),
    ...(override !== undefined && { overrides: overridesOf(override) }),
  };
  return { ...(await readFields(file, READ_ONLY)), ...fields, ...clearedFields(clear, fields) };
}

/** The values with which `update --clear` clears fields, by the names that it accepts. */
const CLEARED: Readonly<Record<string, KeyChange>> = {
  plan: { rateLimitId: null },
  expires: { expiresAt: null },
  'external-id': { externalId: null },
  tags: { tags: [] },
  metadata: { metadata: null },
  'allowed-ips': { allowedIps: null },
  'allowed-origins': { allowedOrigins: null },
  overrides: { overrides: null },
};

export const CLEARABLE = Object.keys(CLEARED);

/** Throws if another option sets one of the fields. */
function clearedFields(names: readonly string[], set: KeyChange): KeyChange {
  const cleared = names.map((name) => {
    const fields = Object.hasOwn(CLEARED, name) ? CLEARED[name] : undefined;
    if (fields === undefined)
      throw new CommandFault('usage', `--clear takes one of ${CLEARABLE.join(', ')}.`);
    if (Object.keys(fields).some((field) => field in set))
      throw new CommandFault('usage', `--clear ${name} takes away what another option sets.`);
    return fields;
  });
  return Object.assign({}, ...cleared);
}

function overridesOf(texts: readonly string[]): NonNullable<KeyChange['overrides']> {
  const overrides = texts.map((text) => {
    const [, limitId, limit, until] = /^([^=]+)=(\d{1,15})(?:@(.+))?$/.exec(text) ?? [];
    if (limitId === undefined)
      throw new CommandFault('usage', '--override must be like main=5000 or main=5000@2027-01-01T00:00:00Z.');
    const ends = until === undefined ? {} : { until: instant(until, 'from now') };
    return [limitId, { limit: Number(limit), ...ends }] as const;
  });
  const ids = overrides.map(([limitId]) => limitId);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) throw new CommandFault('usage', `--override names the limit ${twice} twice.`);
  return Object.fromEntries(overrides) as NonNullable<KeyChange['overrides']>;
}
