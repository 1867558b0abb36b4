import { bodyOf } from '../../client/management-client.ts';
import { definedFields } from '../../platform/defined-fields.ts';
import { managed } from '../api/session.ts';
import type { Declare } from '../declare.ts';
import { type UsageOptions, usageOptions, writeUsage } from './usage-listing.ts';

interface AllUsageOptions extends UsageOptions {
  readonly tag?: string;
  readonly externalId?: string;
}

export const declareUsage: Declare = (command, terminal) =>
  void managed<AllUsageOptions>(
    usageOptions(
      command.description(
        'Shows the requests of all keys over time: the last 24 hours where nothing else is said.',
      ),
    )
      .option('--tag <tag>', 'only of keys that have this tag now')
      .option('--external-id <id>', 'only of keys of this owner in your own system')
      .addHelpText(
        'after',
        '\nExamples:\n  tollgate usage --from 7d --interval day --group-by customer -o csv\n  tollgate usage --interval total --group-by key --top 10',
      ),
    terminal,
    async ({ client, output }, _words, options) => {
      const { tag, externalId } = options;
      const filter = definedFields({ tag, externalId });
      await writeUsage(options, output, (query) =>
        bodyOf(client.GET('/api-keys/usage', { params: { query: { ...query, ...filter } } })),
      );
    },
  );
