import type { Declare } from '../../declare.ts';
import { declareBulkChange } from './bulk-change.ts';
import { declareKeyChanges } from './change-keys.ts';
import { declareDelete } from './delete-key.ts';
import { declareFind } from './find-key.ts';
import { declareHandovers } from './handovers.ts';
import { declareImport } from './import-keys.ts';
import { declareKeyReads } from './read-keys.ts';
import { declareRotation } from './rotate-key.ts';

export const declareKeys: Declare = (command, terminal) => {
  command.description(
    'Consumer API keys. Where a <key> is asked for, its id will do, and its name where no other key has it.',
  );
  declareKeyReads(command, terminal);
  declareKeyChanges(command, terminal);
  declareRotation(command, terminal);
  declareHandovers(command, terminal);
  declareDelete(command, terminal);
  declareBulkChange(command, terminal);
  declareFind(command, terminal);
  declareImport(command, terminal);
};
