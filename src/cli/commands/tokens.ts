import type { Command } from 'commander';
import type { paths } from '../../client/management-api.ts';
import { bodyOf, type ManagementClient } from '../../client/management-client.ts';
import { type ConfirmationOptions, destructive, isConfirmed } from '../api/confirmation.ts';
import { oneByName } from '../api/one-by-name.ts';
import { type PageOptions, paged, pagesOf } from '../api/pages.ts';
import { keepSecret, makesSecret, type SecretFileOptions } from '../api/secret-file.ts';
import { audited, managed } from '../api/session.ts';
import { CommandFault } from '../command-fault.ts';
import type { Declare } from '../declare.ts';
import { collect, graceOption, instant } from '../option-values.ts';
import { doneListing, type Listing } from '../output/columns.ts';
import { rotatedListing, SECRET_COLUMN } from '../output/new-secret.ts';
import type { Terminal } from '../terminal.ts';

type Token =
  paths['/tollgate/admin-token']['get']['responses'][200]['content']['application/json']['adminTokens'][number];
type NewToken = paths['/tollgate/admin-token/create']['post']['requestBody']['content']['application/json'];

interface CreateOptions extends SecretFileOptions {
  readonly scope: readonly string[];
  readonly onlyTag?: readonly string[];
  readonly allowedIp?: readonly string[];
  readonly expires?: string;
}

interface RotateOptions extends ConfirmationOptions, SecretFileOptions {
  readonly grace: number;
}

export const declareTokens: Declare = (tokens, terminal) => {
  tokens.description(
    'Admin tokens, which may do what their scopes say. Where a <token> is asked for, its id will do, and its name where no other token has it.',
  );

  declareList(tokens, terminal);
  declareCreate(tokens, terminal);
  declareDelete(tokens, terminal);
  declareRotate(tokens, terminal);
};

function declareList(tokens: Command, terminal: Terminal): void {
  const list = tokens
    .command('list')
    .summary('List tokens')
    .description('Lists admin tokens, newest first.')
    .addHelpText('after', '\nExample:\n  tollgate tokens list --all -o csv');
  managed<PageOptions>(paged(list), terminal, async ({ client, output }, _words, options) => {
    const pages = pagesOf(options, output, async (query) => {
      const page = await bodyOf(client.GET('/tollgate/admin-token', { params: { query } }));
      return { items: page.adminTokens, nextCursor: page.nextCursor };
    });
    await output.list(TOKENS, pages);
  });
}

function declareCreate(tokens: Command, terminal: Terminal): void {
  const create = tokens
    .command('create')
    .summary('Make a token')
    .description('Makes a token, and shows its secret this once. A token can give only scopes that it has.')
    .argument('<name>')
    .requiredOption(
      '--scope <scope>',
      'a scope or a preset (read-only, support, provisioning, ci, verifier); repeated: several',
      collect,
    )
    .option('--only-tag <tag>', 'sees and makes only keys with this tag; repeated: with all of them', collect)
    .option(
      '--allowed-ip <network>',
      'address or network from which alone it may be used; repeated: several',
      collect,
    )
    .option('--expires <when>', 'instant in UTC, or from now: 30d, 12h')
    .addHelpText(
      'after',
      `
Examples:
  tollgate tokens create deploy --scope provisioning --expires 90d --secret-file deploy-token
  tollgate tokens create support --scope support --only-tag eu`,
    );
  managed<CreateOptions>(audited(makesSecret(create)), terminal, async (session, [name = ''], options) => {
    const { client, output } = session;
    const { scope, onlyTag, allowedIp, expires } = options;
    const body: NewToken = {
      name,
      // The gateway checks the scopes, and lists the known ones if one is unknown.
      scopes: [...scope] as NewToken['scopes'],
      ...(onlyTag !== undefined && { onlyTags: [...onlyTag] }),
      ...(allowedIp !== undefined && { allowedIps: [...allowedIp] }),
      ...(expires !== undefined && { expiresAt: instant(expires, 'from now') }),
    };
    const made = await keepSecret(session, options, () =>
      bodyOf(client.POST('/tollgate/admin-token/create', { body })),
    );
    await output.item({ ...TOKENS, columns: [SECRET_COLUMN, ...TOKENS.columns] }, made);
  });
}

function declareDelete(tokens: Command, terminal: Terminal): void {
  const remove = tokens
    .command('delete')
    .summary('Revoke a token for good')
    .description('Revokes a token for good: it is rejected from its next request on.')
    .argument('<token>', 'id or name')
    .addHelpText('after', '\nExample:\n  tollgate tokens delete deploy --yes --reason "laptop lost"');
  managed<ConfirmationOptions>(destructive(remove), terminal, async (session, [token = ''], options) => {
    const { client, output } = session;
    const { id, name } = await namedToken(client, token);
    const path = { adminTokenId: id };
    const consequence = `The token ${name} (${id}) is rejected from its next request on, for good.`;
    if (!(await isConfirmed(consequence, options, session))) return;
    const call = client.DELETE('/tollgate/admin-token/{adminTokenId}', { params: { path } });
    await output.item(doneListing('adminTokenId'), await bodyOf(call));
  });
}

function declareRotate(tokens: Command, terminal: Terminal): void {
  const rotate = tokens
    .command('rotate')
    .summary('Give a token a new secret')
    .description(
      'Gives a token a new secret, which is shown this once. The previous one stays valid for as long as --grace says.',
    )
    .argument('<token>', 'id or name')
    .addOption(graceOption())
    .addHelpText(
      'after',
      '\nExample:\n  tollgate tokens rotate deploy --grace 1h --secret-file deploy-token',
    );
  managed<RotateOptions>(
    destructive(makesSecret(rotate)),
    terminal,
    async (session, [token = ''], options) => {
      const { client, output } = session;
      const { grace, yes, dryRun } = options;
      const { id, rotation } = await namedToken(client, token);
      if (dryRun && grace > 0 && rotation !== null)
        throw new CommandFault(
          'conflict',
          `The token ${token} has two secrets already. Wait until ${rotation.previousValidUntil}, or end both with --grace 0s.`,
        );
      const consequence =
        grace === 0
          ? `The present secret of the token ${token} is rejected from the next request on.`
          : `The present secret of the token ${token} stays valid for ${grace} s beside the new one.`;
      // With a grace period the present secret stays valid: no confirmation is needed.
      const confirmation = { yes: yes === true || grace > 0, dryRun: dryRun === true };
      if (!(await isConfirmed(consequence, confirmation, session))) return;
      const request = { params: { path: { adminTokenId: id } }, body: { graceSeconds: grace } };
      const rotated = await keepSecret(session, options, () =>
        bodyOf(client.POST('/tollgate/admin-token/{adminTokenId}/rotate', request)),
      );
      await output.item(rotatedListing('adminTokenId'), rotated);
    },
  );
}

/** The token that has this id or this name. */
function namedToken(client: ManagementClient, idOrName: string) {
  return oneByName('token', idOrName, async (query) => {
    const page = await bodyOf(client.GET('/tollgate/admin-token', { params: { query } }));
    const items = page.adminTokens.map((each) => ({ ...each, id: each.adminTokenId }));
    return { items, nextCursor: page.nextCursor };
  });
}

const TOKENS: Listing<Token> = {
  columns: [
    { name: 'id', toCell: ({ adminTokenId }) => adminTokenId },
    { name: 'name', toCell: ({ name }) => name },
    { name: 'hint', toCell: ({ secretHint }) => secretHint },
    { name: 'scopes', toCell: ({ scopes }) => scopes.join(' ') },
    { name: 'only tags', toCell: ({ onlyTags }) => onlyTags.join(' ') },
    { name: 'expires', toCell: ({ expiresAt }) => expiresAt },
    { name: 'last used', toCell: ({ lastUsedAt }) => lastUsedAt },
    { name: 'created', toCell: ({ createdAt }) => createdAt },
  ],
  idOf: ({ adminTokenId }) => adminTokenId,
};
