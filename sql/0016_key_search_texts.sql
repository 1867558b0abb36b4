-- What the list of keys is searched by, in a table of its own. An index of three characters can't help a search for one or two: so that reads
-- a fraction of what the keys take, and need not fold their case.
--
-- The version before knows nothing of this: what it writes gets here by the trigger.

CREATE FUNCTION key_search_text(consumer_keys) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
  'SELECT fold_case($1.name || chr(10) || coalesce($1.external_id, '''') || chr(10) || $1.id || chr(10) || coalesce($1.secret_hint, ''''))';

CREATE TABLE key_search_texts (
  key_id text COLLATE "C" NOT NULL,
  content text COLLATE "C" NOT NULL
);

CREATE FUNCTION write_key_search_text() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO key_search_texts (key_id, content) VALUES (NEW.id, key_search_text(NEW))
    ON CONFLICT (key_id) DO UPDATE SET content = EXCLUDED.content; --
  RETURN NULL; --
END $$;

-- First: changes of keys then wait until the present ones are copied.
CREATE TRIGGER write_key_search_text AFTER INSERT OR UPDATE OF name, external_id, secret_hint ON consumer_keys
  FOR EACH ROW EXECUTE FUNCTION write_key_search_text();

INSERT INTO key_search_texts (key_id, content)
SELECT id, key_search_text(keys) FROM consumer_keys AS keys ORDER BY id;

ALTER TABLE key_search_texts
  ADD PRIMARY KEY (key_id),
  ADD FOREIGN KEY (key_id) REFERENCES consumer_keys (id) ON DELETE CASCADE;
