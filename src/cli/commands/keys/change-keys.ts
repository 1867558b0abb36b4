import type { Command } from 'commander';
import type { paths } from '../../../client/management-api.ts';
import { bodyOf } from '../../../client/management-client.ts';
import { type ConfirmationOptions, destructive, isConfirmed } from '../../api/confirmation.ts';
import { keyIdOf, namedKey } from '../../api/key-by-name.ts';
import { fieldsFor } from '../../api/read-object.ts';
import { keepSecret, makesSecret, type SecretFileOptions } from '../../api/secret-file.ts';
import { audited, managed, type Session } from '../../api/session.ts';
import { collect } from '../../option-values.ts';
import type { Listing } from '../../output/columns.ts';
import { SECRET_COLUMN } from '../../output/new-secret.ts';
import type { Terminal } from '../../terminal.ts';
import { type HandoverLink, type HandoverOptions, handoverField, mayHandOver } from './handover-option.ts';
import {
  CLEARABLE,
  type KeyChange,
  type KeyFieldOptions,
  keyFieldOptions,
  keyFieldsOf,
} from './key-field-options.ts';
import { KEYS } from './key-listing.ts';

type NewKey = paths['/consumer-api-key/create']['post']['requestBody']['content']['application/json'];

interface CreateOptions extends KeyFieldOptions, SecretFileOptions, HandoverOptions {
  readonly disabled?: boolean;
}

interface UpdateOptions extends KeyFieldOptions {
  readonly name?: string;
  readonly addTag?: readonly string[];
  readonly removeTag?: readonly string[];
}

/** Declares the commands that make and change keys. */
export function declareKeyChanges(keys: Command, terminal: Terminal): void {
  declareCreate(keys, terminal);
  declareUpdate(keys, terminal);

  const enable = keys
    .command('enable')
    .summary('Let a key be used again')
    .description('Lets a disabled key be used again, with its next request.')
    .argument('<key>', 'id or name')
    .addHelpText('after', '\nExample:\n  tollgate keys enable "Mobile app" --reason "paid"');
  managed(audited(enable), terminal, async (session, [key = '']) =>
    change(session, await keyIdOf(session.client, key), { enabled: true }),
  );

  const disable = keys
    .command('disable')
    .summary('Reject a key until it is enabled')
    .description('Rejects a key from its next request on, until it is enabled again.')
    .argument('<key>', 'id or name')
    .addHelpText('after', '\nExample:\n  tollgate keys disable "Mobile app" --yes --reason "leaked"');
  managed<ConfirmationOptions>(destructive(disable), terminal, async (session, [key = ''], options) => {
    const { id, name } = await namedKey(session.client, key);
    const consequence = `The key ${name} (${id}) is rejected from its next request on.`;
    if (await isConfirmed(consequence, options, session)) await change(session, id, { enabled: false });
  });
}

function declareCreate(keys: Command, terminal: Terminal): void {
  const create = keyFieldOptions(
    keys
      .command('create')
      .summary('Make a key')
      .description('Makes a key, and shows its secret this once, or a link to it with --handover.')
      .argument('<name>')
      .option('--disabled', 'reject the key until it is enabled'),
  ).addHelpText(
    'after',
    `
Examples:
  tollgate keys create "Mobile app" --plan gold --tag eu
  tollgate keys create CI --expires 30d --secret-file ci-key
  tollgate keys create Partner --handover 24h --handover-note "For the partner's team"
  SECRET=$(tollgate keys create CI -o json | jq -r .secret)`,
  );
  managed<CreateOptions>(
    audited(mayHandOver(makesSecret(create))),
    terminal,
    async (session, [name = ''], options) => {
      const { client, output } = session;
      const { disabled } = options;
      const { consumerApiKeyId: _ofAnother, ...fields } = await keyFieldsOf(options);
      const body = {
        ...{ ...fields, ...handoverField(options), name },
        ...(disabled && { enabled: false }),
      } as NewKey;
      const made = await keepSecret(session, options, () =>
        bodyOf(client.POST('/consumer-api-key/create', { body })),
      );
      await output.item(MADE_KEY, made);
    },
  );
}

function declareUpdate(keys: Command, terminal: Terminal): void {
  const update = keyFieldOptions(
    keys
      .command('update')
      .summary('Change a key')
      .description(
        'Changes what the options name, and leaves the rest; the options that may be repeated replace all that there was, but for --add-tag and --remove-tag. The change holds with the next request of the key.',
      )
      .argument('<key>', 'id or name')
      .option('--name <name>', 'a new name')
      .option('--add-tag <tag>', 'one tag more; repeated: several', collect)
      .option('--remove-tag <tag>', 'one tag less; repeated: several', collect)
      .option('--clear <field>', `take away ${CLEARABLE.join(', ')}; repeated: several`, collect),
  ).addHelpText(
    'after',
    `
Examples:
  tollgate keys update "Mobile app" --plan gold --reason "upgraded"
  tollgate keys update "Mobile app" --clear expires --add-tag paid`,
  );
  managed<UpdateOptions>(audited(update), terminal, async (session, [key = ''], options) => {
    const { name, addTag, removeTag, file } = options;
    const fields = await keyFieldsOf(options);
    const id = await keyIdOf(session.client, key);
    await change(session, id, {
      ...fieldsFor({ idField: 'consumerApiKeyId', id, file }, fields),
      ...(name !== undefined && { name }),
      ...(addTag !== undefined && { addTags: [...addTag] }),
      ...(removeTag !== undefined && { removeTags: [...removeTag] }),
    });
  });
}

async function change({ client, output }: Session, consumerApiKeyId: string, body: KeyChange): Promise<void> {
  const path = { consumerApiKeyId };
  const call = client.PATCH('/consumer-api-key/{consumerApiKeyId}', { params: { path }, body });
  await output.item(KEYS, await bodyOf(call));
}

const MADE_KEY: Listing<{
  readonly id: string;
  readonly name: string;
  readonly secret?: string;
  readonly handover?: HandoverLink;
  readonly createdAt: string;
}> = {
  columns: [
    { name: 'id', toCell: ({ id }) => id },
    { name: 'name', toCell: ({ name }) => name },
    SECRET_COLUMN,
    { name: 'created', toCell: ({ createdAt }) => createdAt },
  ],
  idOf: ({ id }) => id,
};
