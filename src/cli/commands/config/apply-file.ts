import { bodyOf } from '../../../client/management-client.ts';
import { type ConfirmationOptions, isConfirmed } from '../../api/confirmation.ts';
import { noteLostOutput, notingLoss, type SecretFileOptions, withSecretFile } from '../../api/secret-file.ts';
import type { Session } from '../../api/session.ts';
import { CommandFault } from '../../command-fault.ts';
import type { Listing } from '../../output/columns.ts';
import { shownCell } from '../../output/table.ts';
import { type Applied, CHANGES, conflictOf, type Difference, shownFields, summaryOf } from './differences.ts';
import { bodyFor, inFile, type OwnerOptions } from './written-configuration.ts';

export interface ApplyOptions extends OwnerOptions, ConfirmationOptions, SecretFileOptions {
  readonly force?: boolean;
  readonly expectDigest?: string;
}

/** Applies a file after showing the changes and asking for confirmation. */
export async function applyFile(session: Session, file: string, options: ApplyOptions): Promise<void> {
  const { client, patientClient, output } = session;
  const { force, secretFile } = options;
  const body = await bodyFor(file, options);
  const difference = await inFile(bodyOf(client.POST('/tollgate/config/diff', { body })));
  if (options.dryRun) {
    await output.report(CHANGES, difference.changes, difference);
    requireAppliable(difference, options);
  }
  if (difference.changes.length > 0 || options.dryRun) {
    if (!options.yes && !options.dryRun) for (const line of linesOf(difference)) output.note(line);
    if (!(await isConfirmed(summaryOf(difference), options, session))) return;
  }
  if (difference.changes.length === 0) requireDigest(difference, options);
  const expectDigest = options.expectDigest ?? difference.digest;
  const perform = () => {
    const call = patientClient.POST('/tollgate/config/apply', {
      body: { ...body, ...(force && { force }), expectDigest },
    });
    const applied = inFile(bodyOf(call));
    return makesSecrets(difference) ? notingLoss(session, applied) : applied;
  };
  if (secretFile === undefined) {
    const applied = await perform();
    if (makesSecrets(difference)) noteLostOutput(session);
    return showApplied(session, applied);
  }
  await withSecretFile(session, secretFile, async (keep) => {
    const { secrets, webhookSecrets = [], ...applied } = await perform();
    const lines = [...secrets, ...webhookSecrets].map((secret) => `${JSON.stringify(secret)}\n`);
    if (lines.length > 0) keep(lines.join(''));
    await showApplied(session, { ...applied, secrets: [] });
  });
}

function makesSecrets({ changes }: Difference): boolean {
  return changes.some(({ action, type }) => action === 'create' && type !== 'plan');
}

/** For a dry run: rejects what the gateway would reject, as far as the difference shows it. */
function requireAppliable(difference: Difference, options: ApplyOptions): void {
  requireDigest(difference, options);
  const { changes } = difference;
  const { force } = options;
  const conflicts = changes.filter(
    ({ conflict }) => conflict === 'ambiguous' || (conflict !== undefined && !force),
  );
  if (conflicts.length === 0) return;
  const remedy = force
    ? 'Several records have the externalId of an ambiguous one: give it another.'
    : 'Records that are managed elsewhere, or were changed there, need --force.';
  const lines = conflicts.map((change) => shownCell(`  ${change.type} ${change.id}: ${conflictOf(change)}`));
  throw new CommandFault('conflict', [remedy, ...lines].join('\n'));
}

function requireDigest({ changes, digest }: Difference, { expectDigest }: ApplyOptions): void {
  if (expectDigest === undefined || expectDigest === digest) return;
  // Such as of a job of a pipeline that is run again.
  const note =
    changes.length > 0 ? '' : ' There is nothing left to change: they may have been applied already.';
  throw new CommandFault('conflict', `The changes are not those that --expect-digest stands for.${note}`);
}

async function showApplied({ output }: Session, applied: Applied): Promise<void> {
  const secrets = [...applied.secrets, ...(applied.webhookSecrets ?? [])];
  if (output.format === 'table') {
    await output.report(CHANGES, applied.changes, applied);
    if (secrets.length > 0) await output.report(SECRETS, secrets, secrets);
  } else {
    await output.report(MADE_CHANGES, withSecrets(applied), applied);
  }
  output.note(doneOf(applied));
}

/** The changes, those that made a secret with it. Each of a key or webhook has the id of the record in any case. */
function withSecrets({ changes, secrets, webhookSecrets = [] }: Applied): readonly MadeChange[] {
  const made = new Map<string, NewSecret>([
    ...secrets.map((secret) => [`key ${secret.externalId}`, secret] as const),
    ...webhookSecrets.map((secret) => [`webhook ${secret.externalId}`, secret] as const),
  ]);
  return changes.map((change) => ({ ...change, ...made.get(`${change.type} ${change.id}`) }));
}

function doneOf({ summary, changes }: Applied): string {
  if (changes.length === 0) return 'There was nothing to change.';
  const { create, update, delete: gone, unchanged } = summary;
  return `${create} created, ${update} changed, ${gone} deleted, ${unchanged} unchanged.`;
}

function linesOf({ changes }: Difference): readonly string[] {
  return changes.map((change) => {
    const { action, type, id } = change;
    const parts = [`${action} ${type} ${id}`, conflictOf(change), shownFields(change)];
    return shownCell(`  ${parts.filter((part) => part !== '').join('  ')}`);
  });
}

type NewSecret = Applied['secrets'][number] | NonNullable<Applied['webhookSecrets']>[number];

type MadeChange = Applied['changes'][number] & {
  readonly secret?: string;
};

/** One table for programs. */
const MADE_CHANGES: Listing<MadeChange> = {
  columns: [
    ...CHANGES.columns,
    { name: 'recordId', toCell: ({ consumerApiKeyId, webhookId }) => consumerApiKeyId ?? webhookId },
    { name: 'secret', toCell: ({ secret }) => secret },
  ],
  idOf: CHANGES.idOf,
};

/** A second table for people. */
const SECRETS: Listing<NewSecret> = {
  columns: [
    { name: 'externalId', toCell: ({ externalId }) => externalId },
    { name: 'id', toCell: idOf },
    { name: 'secret', toCell: ({ secret }) => secret },
  ],
  idOf,
  isWhole: true,
};

function idOf(secret: NewSecret): string {
  return 'webhookId' in secret ? secret.webhookId : secret.consumerApiKeyId;
}
