-- Where a key may be used from, and what its consumer may do with it.
--
-- The version before knows nothing of these columns: it reads and writes keys as if they were not there, and lets them be used from anywhere.

ALTER TABLE consumer_keys
  -- Addresses and networks (CIDR), as they were given. Null: any.
  ADD COLUMN allowed_ips text[] CHECK (cardinality(allowed_ips) BETWEEN 1 AND 100),
  -- Origins of web pages. Null: any.
  ADD COLUMN allowed_origins text[] CHECK (cardinality(allowed_origins) BETWEEN 1 AND 20),
  -- What the consumer may change of the key with the key itself.
  ADD COLUMN self_service text[] NOT NULL DEFAULT '{}';

-- A preflight carries no key: all keys are asked whether one of them allows the origin. Without a list of pending entries, which each of the
-- look-ups would read from its beginning: made-up origins are looked up a hundred at a time.
CREATE INDEX consumer_keys_allowed_origins ON consumer_keys USING gin (allowed_origins) WITH (fastupdate = off)
  WHERE allowed_origins IS NOT NULL;
