import { AsyncLocalStorage } from 'node:async_hooks';
import { sql } from 'kysely';
import type { UnitOfWork } from '../../platform/unit-of-work.ts';
import { IDLE_TRANSACTION_TIMEOUT } from './postgres-connection.ts';
import type { RecordsDatabase } from './records-database.ts';

/** A unit under way. */
interface Unit {
  readonly transaction: RecordsDatabase;
  readonly effects: (() => Promise<void>)[];
  /** False once its transaction has ended: work that began in the unit and is still running then uses the database itself. */
  isOpen: boolean;
}

/**
 * Units of work in the record store. The unit is found by the asynchronous context of a query, so that repositories need not know of it:
 * they use `db`, which stands for the unit's transaction within a unit and for the database outside.
 */
export class RecordsUnitOfWork implements UnitOfWork {
  readonly db: RecordsDatabase;
  readonly #database: RecordsDatabase;
  readonly #units = new AsyncLocalStorage<Unit>();

  constructor(database: RecordsDatabase) {
    this.#database = database;
    this.db = new Proxy(database, { get: (_, name) => this.#member(name) });
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    const effects: (() => Promise<void>)[] = [];
    const result = await this.#database.transaction().execute(async (transaction) => {
      await sql
        .raw(`SET LOCAL idle_in_transaction_session_timeout = '${IDLE_TRANSACTION_TIMEOUT}'`)
        .execute(transaction);
      const unit: Unit = { transaction, effects, isOpen: true };
      try {
        return await this.#units.run(unit, work);
      } finally {
        unit.isOpen = false;
      }
    });
    for (const effect of effects) await effect();
    return result;
  }

  join<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#openUnit() === undefined ? this.run(work) : work();
  }

  attempt<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.db.transaction().execute(work);
  }

  async afterCommit(effect: () => Promise<void>): Promise<void> {
    const unit = this.#openUnit();
    if (unit === undefined) await effect();
    else unit.effects.push(effect);
  }

  #openUnit(): Unit | undefined {
    const unit = this.#units.getStore();
    return unit?.isOpen ? unit : undefined;
  }

  /** Methods are bound to their object, because they use its private fields. */
  #member(name: string | symbol): unknown {
    const unit = this.#openUnit();
    if (unit !== undefined && name === 'transaction') return () => new Savepoint(unit);
    const owner = unit?.transaction ?? this.#database;
    const member: unknown = Reflect.get(owner, name, owner);
    return typeof member === 'function' ? member.bind(owner) : member;
  }
}

const SAVEPOINT = 'part_of_unit';

/** A transaction within a unit, as a savepoint. Savepoints of one unit may be nested, but must not overlap otherwise. */
class Savepoint {
  readonly #unit: Unit;

  constructor(unit: Unit) {
    this.#unit = unit;
  }

  async execute<Result>(work: (transaction: RecordsDatabase) => Promise<Result>): Promise<Result> {
    const { transaction, effects } = this.#unit;
    const effectsBefore = effects.length;
    await sql.raw(`SAVEPOINT ${SAVEPOINT}`).execute(transaction);
    try {
      const result = await work(transaction);
      await sql.raw(`RELEASE SAVEPOINT ${SAVEPOINT}`).execute(transaction);
      return result;
    } catch (error) {
      effects.length = effectsBefore;
      await sql.raw(`ROLLBACK TO SAVEPOINT ${SAVEPOINT}`).execute(transaction);
      await sql.raw(`RELEASE SAVEPOINT ${SAVEPOINT}`).execute(transaction);
      throw error;
    }
  }
}
