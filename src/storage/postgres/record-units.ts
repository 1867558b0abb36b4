import type { UnitOfWork } from '../../platform/unit-of-work.ts';
import { inTransaction } from './in-transaction.ts';
import type { RecordsDatabase } from './records-database.ts';
import type { Repositories } from './repositories.ts';

/** The record store, or one unit of work in it: services that are built of its repositories read and write there. */
export interface RecordScope extends Repositories, UnitOfWork {
  /**
   * Runs work in a unit: in this one, or else in a new one. Resolves with the result of the work, after the commit and the effects that wait
   * for it. If the work rejects, this rejects, and nothing is written.
   */
  inUnit<Result>(work: (unit: RecordUnit) => Promise<Result>): Promise<Result>;
}

/** A unit of work: all of its repositories read and write in one transaction. Once that has ended, they reject. */
export interface RecordUnit extends RecordScope {
  /** The transaction. */
  readonly db: RecordsDatabase;
  /** Runs a part of the unit. If it rejects, only its writes are rolled back, and its effects are dropped. */
  attempt<Result>(part: () => Promise<Result>): Promise<Result>;
}

/** Runs work in a new unit, as `RecordScope.inUnit` says. */
export async function runUnit<Result>(
  database: RecordsDatabase,
  repositoriesOn: (db: RecordsDatabase) => Repositories,
  work: (unit: RecordUnit) => Promise<Result>,
): Promise<Result> {
  const effects: (() => Promise<void>)[] = [];
  const result = await database.transaction().execute(async (db) => {
    const unit: RecordUnit = {
      ...repositoriesOn(db),
      db,
      afterCommit: async (effect) => void effects.push(effect),
      inUnit: (part) => part(unit),
      attempt: async (part) => {
        const effectsBefore = effects.length;
        try {
          return await inTransaction(db, part);
        } catch (error) {
          effects.length = effectsBefore;
          throw error;
        }
      },
    };
    return work(unit);
  });
  for (const effect of effects) await effect();
  return result;
}
