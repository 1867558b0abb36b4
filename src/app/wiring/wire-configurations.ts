import type { ChangeContext } from '../../audit/change-context.ts';
import type { DesiredState } from '../../desired-state/desired-state.ts';
import { DesiredStateService } from '../../desired-state/desired-state-service.ts';
import { logConfiguredKeys } from '../../desired-state/log-configured-keys.ts';
import type { WebhookMaker } from '../../desired-state/new-managed-webhooks.ts';
import { InvalidBody, StoreUnavailable, TollgateError } from '../../errors.ts';
import { keyIdMaker } from '../../keys/key-id.ts';
import { secretFault } from '../../keys/secrets/secret-redactor.ts';
import { SecretSealer } from '../../keys/secrets/stored-secret.ts';
import { ChangeVersions } from '../../limiter/changes/change-versions.ts';
import type { DeferrableVersions } from '../../limiter/changes/deferrable-versions.ts';
import { digestOfSecret } from '../../secrets/secret-digest.ts';
import type { SecretVault } from '../../secrets/secret-vault.ts';
import type { RecordScope } from '../../storage/postgres/record-units.ts';
import { faultsInFile } from '../invalid-configuration.ts';
import type { ReplicaContext } from '../replica-context.ts';
import type { Stores } from './wire-stores.ts';

/** What a sealer of secrets is built from. */
export interface Sealing {
  readonly vault: SecretVault;
  readonly rootTokens: readonly string[];
}

/** The sealer of the secrets of new keys. */
export function createSealer({ settings }: Pick<ReplicaContext, 'settings'>, { vault, rootTokens }: Sealing) {
  return new SecretSealer({
    vault,
    reveal: settings.secretReveal,
    // A consumer key must not equal a root token: the gateway would send it to the backend.
    reservedDigests: rootTokens.map(digestOfSecret),
  });
}

/** The service that applies configurations, in the record store or in a unit of work. `onDeferred` as in `ChangeVersions`. */
export type ConfigurationsIn = (scope: RecordScope, onDeferred: () => void) => DesiredStateService;

/** Builds the service that applies configurations. */
export function wireConfigurations(
  context: ReplicaContext,
  { records }: Pick<Stores, 'records'>,
  {
    versions,
    webhooks,
    ...sealing
  }: Sealing & { readonly versions: DeferrableVersions; readonly webhooks: WebhookMaker },
): ConfigurationsIn {
  const { settings, platform } = context;
  const { clock, random } = platform;
  const parts = {
    committed: records.plans,
    webhooks,
    sealer: createSealer(context, sealing),
    clock,
    random,
    makeId: keyIdMaker(clock, random),
    keyPrefix: settings.keyPrefix,
    defaultPlanId: settings.defaultPlanId,
  };
  return (scope, onDeferred) =>
    new DesiredStateService({
      ...parts,
      store: scope.desiredState,
      inUnit: scope.inUnit,
      // The service publishes after the commit itself, because it reads what it publishes then.
      versions: new ChangeVersions({ versions, unit: records, onDeferred }),
    });
}

/**
 * Applies the configuration of `CONFIG_FILE`, unless it was the last one applied: of the many replicas that start with it, one applies it.
 * Resolves with the reasons why it can't be applied, one line each; empty if it was applied. Rejects with `StoreUnavailable`.
 */
export function configurationOfFile(
  { settings, platform }: ReplicaContext,
  configurations: DesiredStateService,
  desired: DesiredState,
): () => Promise<readonly string[]> {
  const { clock, log } = platform;
  const { configOwner: owner, configPrune: prune, configForce: force, secretReveal } = settings;
  return async () => {
    const fault = secretFault(owner);
    if (fault !== undefined) return [`CONFIG_OWNER must be without a secret in it; ${fault}`];
    try {
      const options = { owner, prune, force, unlessApplied: true, needsSecretHash: secretReveal === 'once' };
      const applied = await configurations.apply(desired, options, changeOf(owner, clock.nowMs()));
      if (applied !== undefined) {
        const { plans, keys, webhooks } = applied.difference;
        const changes = plans.length + keys.length + webhooks.length;
        log.info({ event: 'configuration_applied', owner, changes }, 'CONFIG_FILE was applied');
        logConfiguredKeys(log, owner, applied);
      }
      return [];
    } catch (error) {
      if (!(error instanceof TollgateError) || error instanceof StoreUnavailable) throw error;
      return reasonsOf(error);
    }
  };
}

function changeOf(owner: string, atMs: number): ChangeContext {
  const actor = { type: 'config', id: null, name: owner } as const;
  return { actor, atMs, reason: 'CONFIG_FILE', requestId: '', address: '', onlyTags: [], expects: undefined };
}

function reasonsOf(error: TollgateError): readonly string[] {
  if (error instanceof InvalidBody) return faultsInFile(error);
  const { conflicts } = error.details;
  if (!Array.isArray(conflicts)) return [error.message];
  return conflicts.map(({ type, id, reason }) => `${type} ${id}: ${String(reason).replaceAll('_', ' ')}`);
}
