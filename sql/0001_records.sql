-- Rate limit plans, consumer keys and their secrets.
--
-- Instants are kept to the millisecond. Ids sort by byte ("C"), so that the order of ids is the same in every database.
-- Each statement ends with a semicolon at the end of a line; no other line ends with one.

CREATE TABLE plans (
  id text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
  description text NOT NULL CHECK (char_length(description) <= 1024),
  "limit" bigint NOT NULL CHECK ("limit" BETWEEN 1 AND 999999999999999),
  -- As its author wrote it.
  period text NOT NULL,
  -- A list: limits beside the plan's own, as their author wrote them.
  additional_limits jsonb NOT NULL DEFAULT '[]',
  -- A list: what requests cost, the first match counts.
  costs jsonb NOT NULL DEFAULT '[]',
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL,
  -- Grows by one with every change.
  version bigint NOT NULL DEFAULT 1,
  -- The owner of the configuration that manages it. Null: made through the API.
  managed_by text COLLATE "C",
  -- SHA-256 of what the configuration says of it, see src/desired-state/written-state.ts.
  managed_digest bytea
);

CREATE TABLE consumer_keys (
  id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 255),
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL,
  -- Grows by one with every change.
  version bigint NOT NULL DEFAULT 1,
  enabled boolean NOT NULL DEFAULT true,
  -- Null: never.
  expires_at timestamptz(3),
  -- Null: the default plan applies.
  plan_id text COLLATE "C" REFERENCES plans (id) ON DELETE RESTRICT,
  -- By limitId: another limit than the plan's, and until when in milliseconds since 1970.
  overrides jsonb NOT NULL DEFAULT '{}',

  -- The key's owner in the administrator's own system. Need not be unique.
  external_id text CHECK (char_length(external_id) BETWEEN 1 AND 128),
  tags text[] NOT NULL DEFAULT '{}' CHECK (cardinality(tags) <= 20),
  -- An object. Null: none.
  metadata jsonb,

  -- Addresses and networks (CIDR) that it may be used from, as they were given. Null: any.
  allowed_ips text[] CHECK (cardinality(allowed_ips) BETWEEN 1 AND 100),
  -- Origins of web pages. Null: any.
  allowed_origins text[] CHECK (cardinality(allowed_origins) BETWEEN 1 AND 20),
  -- What the consumer may change of the key with the key itself.
  self_service text[] NOT NULL DEFAULT '{}',

  -- The version of the key with which its secret came; 0: that with which it was made.
  secret_version bigint NOT NULL DEFAULT 0,
  -- Made by the gateway, given from outside, or known only by its SHA-256 digest.
  secret_origin text NOT NULL DEFAULT 'generated' CHECK (secret_origin IN ('generated', 'given', 'hashed')),
  -- Its first and last characters, by which people recognise it. Null: unknown.
  secret_hint text,
  -- HMAC-SHA256 of the secret under a key that is not in the database.
  lookup bytea NOT NULL UNIQUE CHECK (octet_length(lookup) = 32),
  -- HMAC of the secret's SHA-256 digest, by which two keys never share a secret.
  digest_lookup bytea CHECK (octet_length(digest_lookup) = 32),
  -- The secret under AES-256-GCM, with a key that is not in the database. Null: it can not be shown again.
  sealed_secret bytea,
  -- The digest, encrypted, of a secret that is known only by it.
  sealed_digest bytea,

  -- As in plans.
  managed_by text COLLATE "C",
  managed_digest bytea
);

-- For the keys under a plan, page by page, and for the check when a plan is deleted.
CREATE INDEX consumer_keys_plan_id ON consumer_keys (plan_id, id);
CREATE INDEX consumer_keys_external_id ON consumer_keys (external_id, id) WHERE external_id IS NOT NULL;
CREATE INDEX consumer_keys_tags ON consumer_keys USING gin (tags) WHERE tags <> '{}';
CREATE INDEX consumer_keys_managed_by ON consumer_keys (managed_by, id) WHERE managed_by IS NOT NULL;
CREATE UNIQUE INDEX consumer_keys_digest_lookup ON consumer_keys (digest_lookup) WHERE digest_lookup IS NOT NULL;
-- To see whether there are any.
CREATE INDEX consumer_keys_secret_origin ON consumer_keys (secret_origin) WHERE secret_origin <> 'generated';

-- A preflight carries no key: all keys are asked whether one of them allows the origin. Without a list of pending entries, which each of the
-- look-ups would read from its beginning: made-up origins are looked up a hundred at a time.
CREATE INDEX consumer_keys_allowed_origins ON consumer_keys USING gin (allowed_origins) WITH (fastupdate = off)
  WHERE allowed_origins IS NOT NULL;

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

INSERT INTO plans (id, description, "limit", period, created_at, updated_at)
VALUES ('default', 'Applies to keys without a plan of their own', 1000, 'hour', now(), now());
