import type { Command } from 'commander';
import { definedFields } from '../../../platform/defined-fields.ts';
import { fieldsFor, readFields } from '../../api/read-object.ts';
import { wholeNumber } from '../../option-values.ts';

export interface PlanOptions {
  readonly limit?: number;
  readonly period?: string;
  readonly description?: string;
  readonly file?: string;
}

/** The options that name terms of a plan. */
export function planOptions(command: Command): Command {
  return command
    .option('--limit <requests>', 'requests that a period allows', wholeNumber)
    .option('--period <period>', 'like second, 15 minutes, hour, 7d, month')
    .option('--description <text>', 'what the plan is for')
    .option(
      '-f, --file <path>',
      'the plan as JSON or YAML, additionalLimits and costs too; - for standard input; options go before it',
    );
}

/** What `show` prints beside the id and the terms of a plan. */
const READ_ONLY = ['createdAt', 'lastUpdated', 'managedBy'];

/** The terms of a plan that the options name, and the id that the file has. */
export async function fieldsOf({
  limit,
  period,
  description,
  file,
}: PlanOptions): Promise<Record<string, unknown>> {
  return {
    ...(await readFields(file, READ_ONLY)),
    ...definedFields({ limit, period, description }),
  };
}

/** The terms that the options name for a plan that there is. Throws if the file is of another plan. */
export async function termsFor(rateLimitId: string, options: PlanOptions): Promise<Record<string, unknown>> {
  const record = { idField: 'rateLimitId', id: rateLimitId, file: options.file };
  return fieldsFor(record, await fieldsOf(options));
}
