-- Events that time brings about: usage of hours, keys that expire.
--
-- The version before knows nothing of this: usage that it moves is in no event.

ALTER TABLE audit_log_ends
  -- Whether an enabled webhook hears usage, and until when a stream that heard it may be continued.
  ADD COLUMN hears_usage boolean NOT NULL DEFAULT false,
  ADD COLUMN usage_streamed_until timestamptz(3),
  -- The last hour and key whose usage became an event in the order of both. What is added to it later is another event.
  ADD COLUMN usage_hour timestamptz(0),
  ADD COLUMN usage_key text COLLATE "C" NOT NULL DEFAULT '';

-- Usage that is in no event yet. It is added to in the transaction that adds to usage_hours, while a webhook or a stream hears usage, and
-- removed in the one that writes the event: each request is in one event.
CREATE TABLE usage_unsent (
  -- Its first instant.
  hour timestamptz(0) NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  successful bigint NOT NULL,
  rate_limited bigint NOT NULL,
  -- The costs of the allowed requests.
  units bigint NOT NULL,
  -- Of bodies.
  bytes_in bigint NOT NULL,
  bytes_out bigint NOT NULL,
  PRIMARY KEY (hour, key_id)
) WITH (fillfactor = 70);

-- What the events of a deleted key need.
CREATE TABLE deleted_keys (
  id text COLLATE "C" PRIMARY KEY,
  external_id text,
  tags text[] NOT NULL,
  deleted_at timestamptz(0) NOT NULL
);

CREATE FUNCTION keep_deleted_key() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO deleted_keys (id, external_id, tags, deleted_at)
  SELECT OLD.id, OLD.external_id, OLD.tags, now() FROM audit_log_ends
  WHERE hears_usage OR usage_streamed_until > now()
  ON CONFLICT (id) DO NOTHING; --
  RETURN NULL; --
END $$;

CREATE TRIGGER keep_deleted_key AFTER DELETE ON consumer_keys FOR EACH ROW EXECUTE FUNCTION keep_deleted_key();

-- Up to where keys were looked at, in the order of their expiry.
CREATE TABLE key_expiry_progress (
  -- The type of the event, and how long before the expiry it is.
  kind text COLLATE "C" PRIMARY KEY,
  at timestamptz(3) NOT NULL,
  key_id text COLLATE "C" NOT NULL
);
