import type { RequestHandler } from 'express';
import type { AuditLog } from '../../audit/audit-log.ts';
import { SecretTaken } from '../../errors.ts';
import type { FailedCredentials } from '../../http/credentials/failed-credentials.ts';
import type { KeyImports } from '../../keys/key-imports.ts';
import type { Endpoint } from '../endpoint.ts';
import type { ChangeContextReader } from '../read-change-context.ts';

interface TakenSecretsOptions {
  readonly imports: KeyImports;
  readonly audit: AuditLog;
  readonly failedCredentials: FailedCredentials | undefined;
  readonly changeOf: ChangeContextReader;
}

/**
 * For secrets in a body that are taken by keys that the principal does not see: the response says so, which a search for them does not. Such
 * a request has an entry in the audit log as a search has, and each of the secrets counts as a wrong credential. The entry is written before the
 * request is handled, because a transaction that is rolled back would take it along.
 */
export function noteTakenSecrets(
  endpoint: Endpoint,
  { imports, audit, failedCredentials, changeOf }: TakenSecretsOptions,
): RequestHandler {
  return async (req, res, next) => {
    if (endpoint.givenSecrets === undefined) return next();
    const change = changeOf(req, res);
    const secrets = endpoint.givenSecrets(req.body);
    const taken = await imports.countOutOfSight(secrets, change.onlyTags);
    if (taken === 0) return next();
    const target = { type: 'operation', id: endpoint.operationId, name: null, tags: [] } as const;
    await audit.record({ action: 'key.find', target, changes: {}, outcome: 'secret_taken' }, change);
    const error = failedCredentials?.errorFor(req, new SecretTaken(), taken);
    next(error?.code === 'too_many_requests' ? error : undefined);
  };
}
