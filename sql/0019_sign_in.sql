-- Sessions of people who signed in with an identity provider.
--
-- The version before knows nothing of this table, and takes audit entries of people for changed ones.

CREATE TABLE sign_in_sessions (
  id text COLLATE "C" PRIMARY KEY,
  -- browser: its secret comes in a cookie; command: as a bearer token.
  kind text NOT NULL,
  subject text COLLATE "C" NOT NULL,
  name text NOT NULL,
  email text,
  scopes text[] NOT NULL,
  -- Only keys with all of these tags exist for it. Empty: all keys do.
  only_tags text[] NOT NULL,
  address text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3) NOT NULL,
  -- When the identity provider is asked again what the person may do.
  renew_at timestamptz(3) NOT NULL,
  -- Coarse: written with each renewal.
  last_used_at timestamptz(3) NOT NULL,
  -- HMAC-SHA256 of the secret's digest under a key that is not in the database. The secret itself is not kept.
  lookup bytea NOT NULL UNIQUE CHECK (octet_length(lookup) = 32),
  -- The digest and the tokens of the identity provider, as JSON, encrypted.
  sealed bytea NOT NULL
) WITH (fillfactor = 70);

CREATE INDEX sign_in_sessions_subject ON sign_in_sessions (subject);
CREATE INDEX sign_in_sessions_expires_at ON sign_in_sessions (expires_at);

-- Of a person. Null: none is known, or it was no person.
ALTER TABLE audit_log ADD COLUMN actor_email text;
ALTER TABLE jobs ADD COLUMN actor_email text;
