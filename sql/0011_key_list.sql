-- What the list of keys is searched, filtered and sorted by.
--
-- The version before knows nothing of this: what it writes is searched and sorted like the rest.

-- Upper and lower case are the same in a search. Postgres from 17 on has the rules of Unicode; before that those of the database apply.
DO $$ DECLARE rules text := ''; BEGIN
  IF getdatabaseencoding() = 'UTF8' AND EXISTS (SELECT FROM pg_collation WHERE collname = 'pg_c_utf8') THEN
    rules := ' COLLATE "pg_c_utf8"'; --
  END IF; --
  EXECUTE 'CREATE FUNCTION fold_case(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS ''SELECT lower($1' || rules || ')'''; --
END $$;

CREATE INDEX consumer_keys_created_at ON consumer_keys (created_at, id);
CREATE INDEX consumer_keys_name ON consumer_keys (fold_case(name) COLLATE "C", id);
-- A key that never expires comes after all others.
CREATE INDEX consumer_keys_expires_at ON consumer_keys (coalesce(expires_at, 'infinity'), id) INCLUDE (expires_at);
CREATE INDEX consumer_keys_disabled ON consumer_keys (id) WHERE NOT enabled;

-- Makes a search for three characters or more fast where there are many keys. Without the extension it reads them all.
DO $$ BEGIN
  CREATE EXTENSION IF NOT EXISTS pg_trgm; --
  -- No column of its own: to add one would lock the table for as long as all its rows are written again.
  CREATE INDEX consumer_keys_search_text ON consumer_keys USING gin (
    (fold_case(name || chr(10) || coalesce(external_id, '') || chr(10) || id || chr(10) || coalesce(secret_hint, '')) COLLATE "C") gin_trgm_ops
  ); --
EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_file THEN
  RAISE NOTICE 'pg_trgm is not available: searching many keys is slow'; --
END $$;

-- Every key has its row, so that all keys can be sorted by their last use.
INSERT INTO usage_totals (key_id, requests, successful, forwarded, forwarded_us)
SELECT id, 0, 0, 0, 0 FROM consumer_keys ORDER BY id
ON CONFLICT (key_id) DO NOTHING;

CREATE FUNCTION begin_usage_totals() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO usage_totals (key_id, requests, successful, forwarded, forwarded_us) VALUES (NEW.id, 0, 0, 0, 0); --
  RETURN NULL; --
END $$;

CREATE TRIGGER begin_usage_totals AFTER INSERT ON consumer_keys FOR EACH ROW EXECUTE FUNCTION begin_usage_totals();

-- A key that was never used comes before all others.
CREATE INDEX usage_totals_last_used_at ON usage_totals (coalesce(last_used_at, '-infinity'), key_id) INCLUDE (last_used_at);
