import type { paths } from '../../client/management-api.ts';
import { bodyOf } from '../../client/management-client.ts';
import { managed } from '../api/session.ts';
import type { Declare } from '../declare.ts';
import type { Listing } from '../output/columns.ts';

type Self = paths['/tollgate/whoami']['get']['responses'][200]['content']['application/json'];

export const declareWhoami: Declare = (command, terminal) =>
  void managed(
    command
      .description('Says as whom the gateway sees you, what you may do, and what its version is.')
      .addHelpText('after', '\nExample:\n  tollgate whoami --context production -o json | jq .scopes'),
    terminal,
    async ({ client, output, url }) => {
      output.note(`The gateway is ${url}.`);
      await output.item(SELF, await bodyOf(client.GET('/tollgate/whoami')));
    },
  );

const SELF: Listing<Self> = {
  columns: [
    { name: 'name', toCell: ({ name }) => name },
    { name: 'type', toCell: ({ type }) => type },
    { name: 'id', toCell: ({ adminTokenId, sessionId }) => adminTokenId ?? sessionId },
    { name: 'email', toCell: ({ email }) => email },
    { name: 'scopes', toCell: ({ scopes }) => scopes.join(' ') },
    { name: 'only tags', toCell: ({ onlyTags }) => onlyTags.join(' ') },
    { name: 'expires', toCell: ({ expiresAt }) => expiresAt },
    { name: 'version', toCell: ({ version }) => version },
  ],
  idOf: ({ adminTokenId, sessionId, type }) => adminTokenId ?? sessionId ?? type,
};
