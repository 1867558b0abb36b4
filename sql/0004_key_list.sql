-- What the list of keys is searched, filtered and sorted by.

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

-- What keys are searched by, in a table of its own. An index of three characters can't help a search for one or two: so that reads a
-- fraction of what the keys take, and need not fold their case.
CREATE TABLE key_search_texts (
  key_id text COLLATE "C" PRIMARY KEY REFERENCES consumer_keys (id) ON DELETE CASCADE,
  content text COLLATE "C" NOT NULL
);

CREATE FUNCTION key_search_text(consumer_keys) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
  'SELECT fold_case($1.name || chr(10) || coalesce($1.external_id, '''') || chr(10) || $1.id || chr(10) || coalesce($1.secret_hint, ''''))';

CREATE FUNCTION write_key_search_text() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO key_search_texts (key_id, content) VALUES (NEW.id, key_search_text(NEW))
    ON CONFLICT (key_id) DO UPDATE SET content = EXCLUDED.content; --
  RETURN NULL; --
END $$;

CREATE TRIGGER write_key_search_text AFTER INSERT OR UPDATE OF name, external_id, secret_hint ON consumer_keys
  FOR EACH ROW EXECUTE FUNCTION write_key_search_text();
