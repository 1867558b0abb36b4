-- Who changed what: one row for each change, written in the change's own transaction.

CREATE TABLE audit_log (
  -- Without gaps: the order of the chain.
  sequence bigint PRIMARY KEY,
  at timestamptz(3) NOT NULL,
  action text COLLATE "C" NOT NULL,
  actor_type text NOT NULL,
  -- Of an admin token or a key. Null: of neither.
  actor_id text COLLATE "C",
  actor_name text NOT NULL,
  target_type text NOT NULL,
  target_id text COLLATE "C" NOT NULL,
  target_name text,
  target_tags text[] NOT NULL,
  -- JSON, as the text that was hashed.
  changes text NOT NULL,
  reason text,
  request_id text NOT NULL,
  address text NOT NULL,
  outcome text NOT NULL,
  -- Four bytes that identify the encryption key whose chain key made the entry's hash.
  key_id bytea NOT NULL CHECK (octet_length(key_id) = 4),
  -- HMACs of the entry before and of this one, see src/audit/audit-chain.ts.
  previous_hash bytea NOT NULL CHECK (octet_length(previous_hash) = 32),
  hash bytea NOT NULL CHECK (octet_length(hash) = 32)
);

CREATE INDEX audit_log_at ON audit_log (at);
CREATE INDEX audit_log_action ON audit_log (action, sequence);
CREATE INDEX audit_log_actor_id ON audit_log (actor_id, sequence) WHERE actor_id IS NOT NULL;
CREATE INDEX audit_log_target_id ON audit_log (target_id, sequence);

-- The ends of the chain, one row. Its lock puts concurrent changes in order; it is taken last in a transaction, right before the commit.
CREATE TABLE audit_log_ends (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  last_sequence bigint NOT NULL,
  last_hash bytea NOT NULL,
  -- The id of an encryption key, then the HMAC of the end under its key for ends. Empty: none yet.
  last_mac bytea NOT NULL DEFAULT '',
  -- The last entry that was removed for its age: the first one that is left follows it.
  pruned_sequence bigint NOT NULL,
  pruned_hash bytea NOT NULL,
  pruned_mac bytea NOT NULL DEFAULT '',
  -- When a replica last reported the end of the log to its own log.
  reported_at timestamptz(3)
) WITH (fillfactor = 50);

INSERT INTO audit_log_ends (last_sequence, last_hash, pruned_sequence, pruned_hash)
VALUES (0, decode(repeat('00', 32), 'hex'), 0, decode(repeat('00', 32), 'hex'));

-- The chain keys of encryption keys that were rotated out, each with the last entry that it may have written.
CREATE TABLE audit_log_keys (
  key_id bytea PRIMARY KEY CHECK (octet_length(key_id) = 4),
  -- Under the first encryption key.
  sealed bytea NOT NULL
);
