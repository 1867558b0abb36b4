-- Two secrets of a key while it is rotated, secrets that come from elsewhere, and a hint by which people recognise a secret.
--
-- The version before knows nothing of these columns and tables: it goes on with the present secret of each key, made by the gateway
-- or not, and rejects previous secrets and keys that were imported by hash.

ALTER TABLE consumer_keys
  -- The version of the key with which its secret came; 0: that with which it was made.
  ADD COLUMN secret_version bigint NOT NULL DEFAULT 0,
  -- Made by the gateway, given from outside, or known only by its SHA-256 digest.
  ADD COLUMN secret_origin text NOT NULL DEFAULT 'generated' CHECK (secret_origin IN ('generated', 'given', 'hashed')),
  -- Its first and last characters. Null: not noted, or unknown.
  ADD COLUMN secret_hint text,
  -- HMAC of the secret's SHA-256 digest, by which two keys never share a secret. Null: not noted before this migration.
  ADD COLUMN digest_lookup bytea CHECK (octet_length(digest_lookup) = 32),
  -- The digest, encrypted, of a secret that is known only by it.
  ADD COLUMN sealed_digest bytea;

CREATE UNIQUE INDEX consumer_keys_digest_lookup ON consumer_keys (digest_lookup) WHERE digest_lookup IS NOT NULL;
-- To see whether there are any.
CREATE INDEX consumer_keys_secret_origin ON consumer_keys (secret_origin) WHERE secret_origin <> 'generated';

-- The secrets that keys had before their present one. One is valid until an instant; after that the row waits for the next rotation.
CREATE TABLE previous_secrets (
  key_id text COLLATE "C" PRIMARY KEY REFERENCES consumer_keys (id) ON DELETE CASCADE,
  -- These are as in consumer_keys.
  version bigint NOT NULL,
  origin text NOT NULL CHECK (origin IN ('generated', 'given', 'hashed')),
  hint text,
  lookup bytea NOT NULL UNIQUE CHECK (octet_length(lookup) = 32),
  digest_lookup bytea UNIQUE CHECK (octet_length(digest_lookup) = 32),
  sealed_secret bytea,
  sealed_digest bytea,
  rotated_at timestamptz(3) NOT NULL,
  valid_until timestamptz(3) NOT NULL,
  -- Null: not since the rotation.
  last_used_at timestamptz(3)
);

-- A single row. Each transaction that brings in secrets from outside raises the version, first of all: so they take turns, and
-- replicas notice that a secret which they know to be wrong may be right by now.
CREATE TABLE secret_imports (
  version bigint NOT NULL
);

INSERT INTO secret_imports (version) VALUES (0);
