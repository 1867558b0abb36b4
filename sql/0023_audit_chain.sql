-- Keys the chain of the audit log: its hashes are HMACs under keys derived from ENCRYPTION_KEY, see src/audit/audit-chain.ts.
--
-- Entries and ends that the version before wrote have no such key: verifying the log names the first of them.

-- Four bytes that identify the encryption key whose chain key made the entry's hash. Zeros: none.
ALTER TABLE audit_log
  ADD COLUMN key_id bytea NOT NULL DEFAULT '\x00000000' CHECK (octet_length(key_id) = 4);

-- The id of an encryption key, then the HMAC of an end under its key for ends. Empty: none.
ALTER TABLE audit_log_ends
  ADD COLUMN last_mac bytea NOT NULL DEFAULT '',
  ADD COLUMN pruned_mac bytea NOT NULL DEFAULT '',
  -- When a replica last reported the end of the log to its own log.
  ADD COLUMN reported_at timestamptz(3);

-- The chain keys of encryption keys that were rotated out, each with the last entry that it may have written.
CREATE TABLE audit_log_keys (
  key_id bytea PRIMARY KEY CHECK (octet_length(key_id) = 4),
  -- Under the first encryption key.
  sealed bytea NOT NULL
);
