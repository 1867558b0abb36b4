-- Rate limit plans and consumer keys.
--
-- Instants are kept to the millisecond. Ids sort by byte ("C"), so that the order of ids is the same in every database.
-- Each statement ends with a semicolon at the end of a line; no other line ends with one.

CREATE TABLE plans (
  id text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
  description text NOT NULL CHECK (char_length(description) <= 1024),
  "limit" bigint NOT NULL CHECK ("limit" BETWEEN 1 AND 999999999999999),
  -- As its author wrote it.
  period text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL,
  -- Grows by one with every change.
  version bigint NOT NULL DEFAULT 1
);

CREATE TABLE consumer_keys (
  id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 255),
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL,
  enabled boolean NOT NULL DEFAULT true,
  -- Null: never.
  expires_at timestamptz(3),
  -- HMAC-SHA256 of the secret under a key that is not in the database.
  lookup bytea NOT NULL UNIQUE CHECK (octet_length(lookup) = 32),
  -- The secret under AES-256-GCM, with a key that is not in the database. Null: it can not be shown again.
  sealed_secret bytea,
  -- Null: the default plan applies.
  plan_id text COLLATE "C" REFERENCES plans (id) ON DELETE RESTRICT,
  -- Grows by one with every change.
  version bigint NOT NULL DEFAULT 1
);

-- For the keys under a plan, page by page, and for the check when a plan is deleted.
CREATE INDEX consumer_keys_plan_id ON consumer_keys (plan_id, id);

INSERT INTO plans (id, description, "limit", period, created_at, updated_at)
VALUES ('default', 'Applies to keys without a plan of their own', 1000, 'hour', now(), now());
