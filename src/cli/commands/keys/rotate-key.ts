import type { Command } from 'commander';
import { bodyOf, type ManagementClient } from '../../../client/management-client.ts';
import { type ConfirmationOptions, destructive, isConfirmed } from '../../api/confirmation.ts';
import { keyIdOf } from '../../api/key-by-name.ts';
import { keepSecret, makesSecret, type SecretFileOptions } from '../../api/secret-file.ts';
import { managed } from '../../api/session.ts';
import { CommandFault } from '../../command-fault.ts';
import { graceOption, instant } from '../../option-values.ts';
import { rotatedListing } from '../../output/new-secret.ts';
import type { Terminal } from '../../terminal.ts';
import { type HandoverOptions, handoverField, mayHandOver } from './handover-option.ts';
import { KEYS } from './key-listing.ts';

interface RotateOptions extends ConfirmationOptions, SecretFileOptions, HandoverOptions {
  readonly grace: number;
  readonly expires?: string;
}

interface EndOptions extends ConfirmationOptions {
  readonly keep: string;
}

/** Declares the commands that give a key a new secret. */
export function declareRotation(keys: Command, terminal: Terminal): void {
  declareRotate(keys, terminal);
  declareEndRotation(keys, terminal);
}

function declareRotate(keys: Command, terminal: Terminal): void {
  const rotate = keys
    .command('rotate')
    .summary('Give a key a new secret')
    .description(
      'Gives a key a new secret, which is shown this once, or by a link with --handover. The previous one stays valid for as long as --grace says, so that its users can change over without a pause. Both are the same key, with the same limits and usage.',
    )
    .argument('<key>', 'id or name')
    .addOption(graceOption())
    .option('--expires <when>', 'a new end of the key: an instant in UTC, or from now: 30d')
    .addHelpText(
      'after',
      `
Examples:
  tollgate keys rotate "Mobile app" --grace 24h --secret-file mobile-app
  tollgate keys rotate "Mobile app" --grace 7d --handover 48h
  tollgate keys rotate "Mobile app" --grace 0s --yes --reason "the secret leaked"
  tollgate keys end-rotation "Mobile app" --keep new --yes`,
    );
  managed<RotateOptions>(
    destructive(mayHandOver(makesSecret(rotate))),
    terminal,
    async (session, [key = ''], options) => {
      const { client, output } = session;
      const { grace, expires, yes, dryRun } = options;
      const path = { consumerApiKeyId: await keyIdOf(client, key) };
      if (dryRun && (await isRotating(client, path)))
        throw new CommandFault('conflict', `The key ${key} has two secrets already: end its rotation first.`);
      const consequence =
        grace === 0
          ? `The present secret of the key ${key} is rejected from the next request on.`
          : `The present secret of the key ${key} stays valid for ${grace} s beside the new one.`;
      // With a grace period the present secret stays valid: no confirmation is needed.
      const confirmation = { yes: yes === true || grace > 0, dryRun: dryRun === true };
      if (!(await isConfirmed(consequence, confirmation, session))) return;
      const body = {
        graceSeconds: grace,
        ...handoverField(options),
        ...(expires !== undefined && { expiresAt: instant(expires, 'from now') }),
      };
      const rotated = await keepSecret(session, options, () =>
        bodyOf(client.POST('/consumer-api-key/{consumerApiKeyId}/rotate', { params: { path }, body })),
      );
      await output.item(rotatedListing('consumerApiKeyId'), rotated);
    },
  );
}

function declareEndRotation(keys: Command, terminal: Terminal): void {
  const end = keys
    .command('end-rotation')
    .summary('End a rotation before its time')
    .description(
      'Ends the rotation of a key: one of its two secrets is rejected from the next request on. --keep previous undoes the rotation.',
    )
    .argument('<key>', 'id or name')
    .requiredOption('--keep <secret>', 'new or previous')
    .addHelpText('after', '\nExample:\n  tollgate keys end-rotation "Mobile app" --keep new --yes');
  managed<EndOptions>(destructive(end), terminal, async (session, [key = ''], options) => {
    const { client, output } = session;
    const { keep, dryRun } = options;
    if (keep !== 'new' && keep !== 'previous')
      throw new CommandFault('usage', '--keep takes new or previous.');
    const path = { consumerApiKeyId: await keyIdOf(client, key) };
    if (dryRun && !(await isRotating(client, path)))
      throw new CommandFault('conflict', `The key ${key} is not being rotated: it has only one secret.`);
    const lost = keep === 'new' ? 'previous' : 'new';
    const consequence = `The ${lost} secret of the key ${key} is rejected from the next request on.`;
    if (!(await isConfirmed(consequence, options, session))) return;
    const request = { params: { path }, body: { keep } } as const;
    const call = client.POST('/consumer-api-key/{consumerApiKeyId}/end-rotation', request);
    await output.item(KEYS, await bodyOf(call));
  });
}

/** For a dry run, which must fail where the gateway would. Throws if there is no such key. */
async function isRotating(
  client: ManagementClient,
  path: { readonly consumerApiKeyId: string },
): Promise<boolean> {
  const query = { reveal: 'false' } as const;
  const call = client.GET('/consumer-api-key/{consumerApiKeyId}', { params: { path, query } });
  return (await bodyOf(call)).rotation !== null;
}
