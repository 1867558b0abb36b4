import { bodyOf, type ManagementClient } from '../../client/management-client.ts';
import { CommandFault } from '../command-fault.ts';

const KEY_ID = /^key_[0-9A-HJKMNP-TV-Z]{26}$/;

/** The id of the key that has this id or this name. Throws where there is none, and with a list of them where several have the name. */
export async function keyIdOf(client: ManagementClient, idOrName: string): Promise<string> {
  if (KEY_ID.test(idOrName)) return idOrName;
  const found: { readonly consumerApiKeyId: string; readonly createdAt: string }[] = [];
  let cursor: string | undefined;
  do {
    const { apiKeys, nextCursor } = await bodyOf(
      client.GET('/consumer-api-key', { params: { query: cursor === undefined ? {} : { cursor } } }),
    );
    found.push(...apiKeys.filter(({ name }) => name === idOrName));
    cursor = nextCursor;
  } while (cursor !== undefined);
  const [first, ...others] = found;
  if (first === undefined)
    throw new CommandFault('notFound', `There is no key with the id or the name ${idOrName}.`);
  if (others.length === 0) return first.consumerApiKeyId;
  const lines = found.map(({ consumerApiKeyId, createdAt }) => `  ${consumerApiKeyId}  made ${createdAt}`);
  throw new CommandFault(
    'conflict',
    [`${found.length} keys have the name ${idOrName}; name one by its id:`, ...lines].join('\n'),
  );
}
