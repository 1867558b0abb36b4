/** The table `idempotent_responses`. */
export interface IdempotentResponsesTable {
  readonly id: Uint8Array;
  readonly created_at: Date;
  readonly sealed: Uint8Array;
}
