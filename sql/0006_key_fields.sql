-- What administrators note of a key: whose it is, tags to group keys by, and anything else.
--
-- The version before knows nothing of these columns: it reads and writes keys as if they were not there.

ALTER TABLE consumer_keys
  -- The key's owner in the administrator's own system. Need not be unique.
  ADD COLUMN external_id text CHECK (char_length(external_id) BETWEEN 1 AND 128),
  ADD COLUMN tags text[] NOT NULL DEFAULT '{}' CHECK (cardinality(tags) <= 20),
  -- An object. Null: none.
  ADD COLUMN metadata jsonb;

CREATE INDEX consumer_keys_external_id ON consumer_keys (external_id, id) WHERE external_id IS NOT NULL;
CREATE INDEX consumer_keys_tags ON consumer_keys USING gin (tags) WHERE tags <> '{}';
