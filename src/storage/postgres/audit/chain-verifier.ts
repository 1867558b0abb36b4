import type { Selectable } from 'kysely';
import { type AuditChain, entryHash, type RetiredChainKey } from '../../../audit/audit-chain.ts';
import type { ChainProblem, ChainReport, Expectation, ExpectedHead } from '../../../audit/audit-log.ts';
import { type AuditLogEndsTable, type AuditLogTable, entryOfRow } from './audit-log-tables.ts';

/** What a log is verified against. */
export interface ChainVerifierOptions {
  readonly chain: AuditChain;
  readonly ends: Selectable<AuditLogEndsTable>;
  readonly retired: readonly RetiredChainKey[];
  readonly expected: ExpectedHead | undefined;
}

/** Follows a chain, row by row, from the entry behind those that were removed for their age. */
export class ChainVerifier {
  readonly #options: ChainVerifierOptions;
  readonly #retired: ReadonlyMap<string, RetiredChainKey>;
  #hash: Uint8Array;
  #sequence: number;
  #lastAtMs: number | null = null;
  #problem: ChainProblem | undefined;
  #expectation: Expectation | undefined;

  constructor(options: ChainVerifierOptions) {
    const { chain, ends, retired } = options;
    this.#options = options;
    this.#retired = new Map(retired.map((key) => [hexOf(key.id), key]));
    this.#sequence = ends.pruned_sequence;
    this.#hash = ends.pruned_hash;
    const pruned = { sequence: this.#sequence, hash: this.#hash };
    if (!chain.isMarked('pruned', pruned, ends.pruned_mac)) this.#problem = 'beginning';
    this.#compareWithExpected();
  }

  /** The sequence number of the last entry in order. */
  get sequence(): number {
    return this.#sequence;
  }

  /** Undefined while all rows were in order. */
  get problem(): ChainProblem | undefined {
    return this.#problem;
  }

  /** Takes the next row. Returns false, and takes no more, if it is not in order. */
  follows(row: Selectable<AuditLogTable>): boolean {
    this.#problem ??= this.#problemOf(row);
    if (this.#problem !== undefined) return false;
    this.#sequence = row.sequence;
    this.#hash = row.hash;
    this.#lastAtMs = row.at.getTime();
    this.#compareWithExpected();
    return true;
  }

  /** The result, once there are no more rows. */
  finish(): ChainReport {
    const { chain, ends } = this.#options;
    const { last_sequence: count, last_hash: hash, last_mac: mark } = ends;
    const isAtEnd = this.#sequence === count && isSame(this.#hash, hash);
    if (!isAtEnd || !chain.isMarked('last', { sequence: count, hash }, mark)) this.#problem ??= 'end';
    const problem = this.#problem;
    // Behind a place that is broken no hash proves anything.
    const expectation = problem === undefined ? this.#expectationAtEnd() : undefined;
    return {
      isValid: problem === undefined && (expectation === undefined || expectation === 'met'),
      entries: this.#sequence - ends.pruned_sequence,
      ...{ problem, firstBroken: problem && this.#sequence + 1, expectation },
      head: { count, hash: hexOf(hash), atMs: problem === undefined ? this.#lastAtMs : null },
    };
  }

  #problemOf(row: Selectable<AuditLogTable>): ChainProblem | undefined {
    if (row.sequence !== this.#sequence + 1) return 'missing';
    if (!isSame(this.#hash, row.previous_hash)) return 'changed';
    const id = hexOf(row.key_id);
    const retired = this.#retired.get(id);
    const isOfRetired = retired !== undefined && row.sequence <= retired.end.sequence;
    const key = this.#options.chain.entryKey(row.key_id) ?? (isOfRetired ? retired.entries : undefined);
    if (key === undefined) return 'unknown_key';
    if (!entryHash(key, row.previous_hash, entryOfRow(row)).equals(row.hash)) return 'changed';
    // A person with an old encryption key could rewrite all that it verifies, but not to the hash that was sealed.
    const isForged = this.#options.retired.some(
      ({ end }) => end.sequence === row.sequence && !isSame(end.hash, row.hash),
    );
    return isForged ? 'changed' : undefined;
  }

  #compareWithExpected(): void {
    const { expected } = this.#options;
    if (expected?.count !== this.#sequence) return;
    this.#expectation = expected.hash === hexOf(this.#hash) ? 'met' : 'other_hash';
  }

  #expectationAtEnd(): Expectation | undefined {
    const { expected } = this.#options;
    if (expected === undefined || this.#expectation !== undefined) return this.#expectation;
    return expected.count > this.#sequence ? 'cut_off' : 'expired';
  }
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}
