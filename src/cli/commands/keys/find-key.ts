import type { paths } from '../../../client/management-api.ts';
import { bodyOf } from '../../../client/management-client.ts';
import { askSecret } from '../../api/ask-secret.ts';
import { audited, managed } from '../../api/session.ts';
import { CommandFault } from '../../command-fault.ts';
import type { Declare } from '../../declare.ts';
import type { Listing } from '../../output/columns.ts';
import { KEYS } from './key-listing.ts';

type FoundKey = paths['/api-keys/find']['post']['responses'][200]['content']['application/json'];

export const declareFind: Declare = (keys, terminal) => {
  const find = keys
    .command('find')
    .summary('Find the key that has a secret')
    .description(
      'Says which key has a secret, its present one or the previous one of a rotation. The secret is asked for, or comes from standard input: never from an argument, which other users of the machine could see. Exit code 4 where no key has it.',
    )
    .addHelpText(
      'after',
      `
Examples:
  tollgate keys find < leaked.txt
  tollgate keys disable "$(tollgate keys find -o id < leaked.txt)" --yes --reason leaked`,
    )
    // Commander's message about excess arguments would repeat the secret.
    .allowExcessArguments();
  managed(audited(find), terminal, async ({ client, output }) => {
    if (find.args.length > 0)
      throw new CommandFault('usage', 'The secret comes from standard input, never from an argument.');
    const secret = await askSecret('Secret: ', terminal);
    await output.item(FOUND_KEY, await bodyOf(client.POST('/api-keys/find', { body: { secret } })));
  });
};

const FOUND_KEY: Listing<FoundKey> = {
  columns: [...KEYS.columns, { name: 'secret', toCell: ({ matchedSecret }) => matchedSecret }],
  idOf: KEYS.idOf,
};
