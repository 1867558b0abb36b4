import { type FieldFault, ImportRejected, InvalidBody } from '../../errors.ts';
import type { Clock } from '../../platform/clock.ts';
import { bodyCheck } from '../body-check.ts';
import { IMPORT_KEYS_BODY, type ImportKeysBody, readKeys } from './import-keys.ts';

/**
 * The check of a request to import keys, for a dry run of the command: returns the fields for which the gateway rejects it. It knows
 * neither which plans exist nor which secrets are taken.
 */
export function createImportCheck(clock: Clock): (body: unknown) => readonly FieldFault[] {
  const check = bodyCheck(IMPORT_KEYS_BODY);
  return (body) => {
    try {
      check(body);
      readKeys((body as ImportKeysBody).keys, clock);
    } catch (error) {
      if (error instanceof InvalidBody) return error.faults;
      // Of a plan that can't exist.
      if (!(error instanceof ImportRejected)) throw error;
    }
    return [];
  };
}
