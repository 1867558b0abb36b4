import { bodyOf, type ManagementClient } from '../../client/management-client.ts';
import { oneByName } from './one-by-name.ts';

const KEY_ID = /^key_[0-9A-HJKMNP-TV-Z]{26}$/;

/** The id of the key with this id or name. An id is not looked up. */
export async function keyIdOf(client: ManagementClient, idOrName: string): Promise<string> {
  return KEY_ID.test(idOrName) ? idOrName : (await namedKey(client, idOrName)).id;
}

/** The key with this id or name, from the list. The detail would show its secret, which adds an entry to the audit log. */
export async function namedKey(client: ManagementClient, idOrName: string) {
  return oneByName('key', idOrName, async (cursor) => {
    const query = { q: idOrName, ...cursor };
    const { apiKeys, nextCursor } = await bodyOf(client.GET('/consumer-api-key', { params: { query } }));
    return { items: apiKeys.map((key) => ({ ...key, id: key.consumerApiKeyId })), nextCursor };
  });
}
