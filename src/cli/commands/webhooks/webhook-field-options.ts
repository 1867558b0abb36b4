import type { Command } from 'commander';
import { readFields } from '../../api/read-object.ts';
import { CommandFault } from '../../command-fault.ts';
import { collect } from '../../option-values.ts';

export interface WebhookFieldOptions {
  readonly event?: readonly string[];
  readonly onlyTag?: readonly string[];
  readonly description?: string;
  readonly batch?: boolean;
  readonly file?: string;
}

/** Adds the options of the fields that create and update share. */
export function webhookFieldOptions(command: Command): Command {
  return command
    .option(
      '--event <type>',
      'a type of event; * at the end: all types that begin so; repeated: several',
      collect,
    )
    .option(
      '--only-tag <tag>',
      'only events about records with this tag; repeated: with all of them',
      collect,
    )
    .option('--description <text>', 'what the webhook is for')
    .option('--batch', 'send up to 500 events of usage in one request')
    .option(
      '-f, --file <path>',
      'fields of the management interface in JSON or YAML, headers too, - for standard input; options go before it',
    );
}

/** What `webhooks show` prints beside the id and the fields that can be written. */
const READ_ONLY = [
  ...['managedBy', 'secretHint', 'rotation', 'disabledReason', 'failingSince'],
  ...['createdAt', 'lastUpdated'],
];
/** What is shown in place of the value of a header. */
const MASK = '***';

/** The fields that the options describe, and the id that the file has. The gateway checks the content of a file, and names its faults. */
export async function webhookFieldsOf(options: WebhookFieldOptions): Promise<Record<string, unknown>> {
  const { event, onlyTag, description, batch, file } = options;
  const written = await readFields(file, READ_ONLY);
  const { headers } = written;
  if (typeof headers === 'object' && headers !== null && Object.values(headers).includes(MASK))
    throw new CommandFault(
      'usage',
      `${file} has asterisks in place of the values of headers. Write the values, or leave "headers" out.`,
    );
  return {
    ...written,
    ...(event !== undefined && { events: [...event] }),
    ...(onlyTag !== undefined && { onlyTags: [...onlyTag] }),
    ...(description !== undefined && { description }),
    ...(batch !== undefined && { batch }),
  };
}
