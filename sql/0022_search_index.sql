-- The index of three characters moves to the texts that keys are searched by, which change only with a key's name, owner or secret. On the
-- keys themselves, each change of a plan, a tag or an expiry wrote some twenty entries of it.
--
-- The version before searches for three characters or more without an index.
DO $$ BEGIN
  CREATE INDEX key_search_texts_content ON key_search_texts USING gin (content gin_trgm_ops); --
  DROP INDEX IF EXISTS consumer_keys_search_text; --
EXCEPTION WHEN undefined_object THEN
  -- Without the extension there is no index of this kind.
  NULL; --
END $$;
