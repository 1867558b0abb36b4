-- Links that hand the secret of a key over to its consumer, once.
--
-- The version before knows nothing of these tables, and its keys go on without them.

CREATE TABLE handovers (
  id text COLLATE "C" PRIMARY KEY,
  -- No reference: the link outlives its key, to say that the key was deleted.
  key_id text COLLATE "C" NOT NULL,
  -- Of the secret that it hands over: a later secret of the key is another one.
  secret_version bigint NOT NULL,
  -- SHA-256 of the token in the link, which itself is stored nowhere.
  token_digest bytea NOT NULL UNIQUE,
  note text,
  created_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3) NOT NULL,
  used_at timestamptz(3),
  revoked_at timestamptz(3),
  CHECK (used_at IS NULL OR revoked_at IS NULL)
);

CREATE INDEX handovers_key_id ON handovers (key_id, id);
CREATE INDEX handovers_expires_at ON handovers (expires_at);

-- What a link keeps, encrypted: deleted once the link is used or revoked, or its key is deleted, whatever deletes it.
CREATE TABLE handover_secrets (
  handover_id text COLLATE "C" PRIMARY KEY REFERENCES handovers (id) ON DELETE CASCADE,
  key_id text COLLATE "C" NOT NULL REFERENCES consumer_keys (id) ON DELETE CASCADE,
  sealed bytea NOT NULL
);

CREATE INDEX handover_secrets_key_id ON handover_secrets (key_id);
