import type { Command } from 'commander';
import { definedFields } from '../../../platform/defined-fields.ts';
import { readFields } from '../../api/read-object.ts';
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

/** What `show` prints beside the terms of a plan. Its id is the argument of the command. */
const READ_ONLY = ['rateLimitId', 'createdAt', 'lastUpdated', 'managedBy'];

/** The terms of a plan that the options name. */
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
