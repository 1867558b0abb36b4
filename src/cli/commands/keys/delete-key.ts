import { bodyOf } from '../../../client/management-client.ts';
import { type ConfirmationOptions, destructive, isConfirmed } from '../../api/confirmation.ts';
import { namedKey } from '../../api/key-by-name.ts';
import { managed } from '../../api/session.ts';
import type { Declare } from '../../declare.ts';
import { doneListing } from '../../output/columns.ts';

export const declareDelete: Declare = (keys, terminal) => {
  const command = keys
    .command('delete')
    .summary('Delete a key for good')
    .description(
      'Deletes a key. It is rejected from its next request on, and nothing brings it back; its usage stays in the series of all keys.',
    )
    .argument('<key>', 'id or name')
    .addHelpText(
      'after',
      `
Examples:
  tollgate keys delete "Mobile app" --dry-run
  tollgate keys delete "Mobile app" --yes --reason "contract ended"`,
    );
  managed<ConfirmationOptions>(destructive(command), terminal, async (session, [key = ''], options) => {
    const { client, output } = session;
    const { id, name } = await namedKey(client, key);
    const path = { consumerApiKeyId: id };
    const consequence = `The key ${name} (${id}) is deleted for good.`;
    if (!(await isConfirmed(consequence, options, session))) return;
    const call = client.DELETE('/consumer-api-key/{consumerApiKeyId}', { params: { path } });
    await output.item(doneListing('consumerApiKeyId'), await bodyOf(call));
  });
};
