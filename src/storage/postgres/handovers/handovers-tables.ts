/** The table `handovers`. */
export interface HandoversTable {
  readonly id: string;
  readonly key_id: string;
  readonly secret_version: number;
  readonly token_digest: Uint8Array;
  readonly note: string | null;
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly used_at: Date | null;
  readonly revoked_at: Date | null;
}

/** The table `handover_secrets`. */
export interface HandoverSecretsTable {
  readonly handover_id: string;
  readonly key_id: string;
  readonly sealed: Uint8Array;
}
