-- Credentials of the management interface besides the root token, each with what it may do.

CREATE TABLE admin_tokens (
  id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 255),
  scopes text[] NOT NULL,
  -- Only keys with all of these tags exist for it. Empty: all keys do.
  only_tags text[] NOT NULL DEFAULT '{}',
  -- Addresses and networks that it may be used from. Null: any.
  allowed_ips text[],
  -- Null: never.
  expires_at timestamptz(3),
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL,
  -- Grows by one with every change.
  version bigint NOT NULL DEFAULT 1,
  -- Coarse: written at most once a minute. Null: never used.
  last_used_at timestamptz(3),
  -- First and last characters of the secret.
  secret_hint text NOT NULL,
  -- HMAC-SHA256 of the secret under a key that is not in the database. The secret itself is not kept.
  lookup bytea NOT NULL UNIQUE CHECK (octet_length(lookup) = 32),
  -- SHA-256 of the secret, encrypted, from which look-ups under another encryption key are made.
  sealed_digest bytea,
  -- Of the secret before, which is valid until then.
  previous_lookup bytea UNIQUE CHECK (octet_length(previous_lookup) = 32),
  previous_sealed_digest bytea,
  previous_valid_until timestamptz(3),
  CHECK ((previous_lookup IS NULL) = (previous_valid_until IS NULL))
);
