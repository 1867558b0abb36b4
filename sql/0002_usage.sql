-- What consumer keys were used for.
--
-- Counts have the same meaning everywhere. Failed requests are those that were not successful; the mean response time is
-- forwarded_us / forwarded, in microseconds.

-- What was moved of each shard. A batch whose id is not above the last one of its source is in already.
CREATE TABLE usage_shards (
  shard smallint NOT NULL,
  -- The Redis data set that the batch came from. A restored or promoted Redis is another one.
  source text COLLATE "C" NOT NULL,
  last_batch bigint NOT NULL,
  moved_at timestamptz(3) NOT NULL,
  PRIMARY KEY (shard, source)
) WITH (fillfactor = 50);

-- The last write of each writer to a shard that is in: tells a writer that lost a reply, and whose Redis then lost its data, what was kept.
CREATE TABLE usage_writers (
  shard smallint NOT NULL,
  writer text COLLATE "C" NOT NULL,
  last_sequence bigint NOT NULL,
  moved_at timestamptz(3) NOT NULL,
  PRIMARY KEY (shard, writer)
) WITH (fillfactor = 50);

-- The totals of each key. The endpoints and the customers of a key each sum to them. All three go with the key.
CREATE TABLE usage_totals (
  key_id text COLLATE "C" PRIMARY KEY REFERENCES consumer_keys (id) ON DELETE CASCADE,
  requests bigint NOT NULL,
  successful bigint NOT NULL,
  forwarded bigint NOT NULL,
  forwarded_us bigint NOT NULL,
  -- Names in the two lists, without __other__, so that the caps can be held without counting rows.
  endpoints integer NOT NULL DEFAULT 0,
  customers integer NOT NULL DEFAULT 0,
  -- The time of the last request.
  last_used_at timestamptz(0)
) WITH (fillfactor = 70);

-- A key that was never used comes before all others.
CREATE INDEX usage_totals_last_used_at ON usage_totals (coalesce(last_used_at, '-infinity'), key_id) INCLUDE (last_used_at);

-- Every key has its row, so that all keys can be sorted by their last use.
CREATE FUNCTION begin_usage_totals() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO usage_totals (key_id, requests, successful, forwarded, forwarded_us) VALUES (NEW.id, 0, 0, 0, 0); --
  RETURN NULL; --
END $$;

CREATE TRIGGER begin_usage_totals AFTER INSERT ON consumer_keys FOR EACH ROW EXECUTE FUNCTION begin_usage_totals();

CREATE TABLE usage_by_endpoint (
  key_id text COLLATE "C" NOT NULL REFERENCES usage_totals (key_id) ON DELETE CASCADE,
  name text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  successful bigint NOT NULL,
  forwarded bigint NOT NULL,
  forwarded_us bigint NOT NULL,
  PRIMARY KEY (key_id, name)
) WITH (fillfactor = 70);

CREATE TABLE usage_by_customer (
  key_id text COLLATE "C" NOT NULL REFERENCES usage_totals (key_id) ON DELETE CASCADE,
  name text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  successful bigint NOT NULL,
  forwarded bigint NOT NULL,
  forwarded_us bigint NOT NULL,
  PRIMARY KEY (key_id, name)
) WITH (fillfactor = 70);
