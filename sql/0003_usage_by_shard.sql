-- Usage that can be read over time, and that is moved from Redis by shard instead of by key.
--
-- The three tables below have the same ten counts and no reference to the key: they outlive it, so that last month's bill does not
-- change. They are partitioned by month of UTC. The gateway makes the partitions ahead and drops those that are too old; a row
-- without a month of its own is in the default partition. Every row says under which plan its requests were made: '' = under none.

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

-- Batches of single keys come from the version before only. The time is that of the last request.
ALTER TABLE usage_totals ALTER COLUMN last_batch SET DEFAULT 0, ADD COLUMN last_used_at timestamptz(0);

CREATE TABLE usage_hours (
  key_id text COLLATE "C" NOT NULL,
  -- Its first instant.
  hour timestamptz(0) NOT NULL,
  plan_id text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  successful bigint NOT NULL,
  forwarded bigint NOT NULL,
  -- Microseconds.
  forwarded_us bigint NOT NULL,
  rate_limited bigint NOT NULL DEFAULT 0,
  -- Final status 4xx, 429 included, and 5xx.
  client_errors bigint NOT NULL DEFAULT 0,
  server_errors bigint NOT NULL DEFAULT 0,
  shadow_limited bigint NOT NULL DEFAULT 0,
  -- Of bodies.
  bytes_in bigint NOT NULL DEFAULT 0,
  bytes_out bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (key_id, hour, plan_id)
) PARTITION BY RANGE (hour);

-- Rows are written in the order of time, so that a block range index finds the hours of all keys at next to no cost.
CREATE INDEX usage_hours_hour ON usage_hours USING brin (hour) WITH (pages_per_range = 16, autosummarize = on);
CREATE TABLE usage_hours_default PARTITION OF usage_hours DEFAULT WITH (fillfactor = 70);

CREATE TABLE usage_endpoint_days (
  key_id text COLLATE "C" NOT NULL,
  -- In UTC.
  day date NOT NULL,
  plan_id text COLLATE "C" NOT NULL,
  -- As in usage_by_endpoint, __other__ included.
  name text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  successful bigint NOT NULL,
  forwarded bigint NOT NULL,
  forwarded_us bigint NOT NULL,
  rate_limited bigint NOT NULL DEFAULT 0,
  client_errors bigint NOT NULL DEFAULT 0,
  server_errors bigint NOT NULL DEFAULT 0,
  shadow_limited bigint NOT NULL DEFAULT 0,
  bytes_in bigint NOT NULL DEFAULT 0,
  bytes_out bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (key_id, day, name, plan_id)
) PARTITION BY RANGE (day);

CREATE INDEX usage_endpoint_days_day ON usage_endpoint_days USING brin (day) WITH (pages_per_range = 16, autosummarize = on);
CREATE TABLE usage_endpoint_days_default PARTITION OF usage_endpoint_days DEFAULT WITH (fillfactor = 70);

CREATE TABLE usage_customer_days (
  key_id text COLLATE "C" NOT NULL,
  day date NOT NULL,
  plan_id text COLLATE "C" NOT NULL,
  -- As in usage_by_customer, __other__ included.
  name text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  successful bigint NOT NULL,
  forwarded bigint NOT NULL,
  forwarded_us bigint NOT NULL,
  rate_limited bigint NOT NULL DEFAULT 0,
  client_errors bigint NOT NULL DEFAULT 0,
  server_errors bigint NOT NULL DEFAULT 0,
  shadow_limited bigint NOT NULL DEFAULT 0,
  bytes_in bigint NOT NULL DEFAULT 0,
  bytes_out bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (key_id, day, name, plan_id)
) PARTITION BY RANGE (day);

CREATE INDEX usage_customer_days_day ON usage_customer_days USING brin (day) WITH (pages_per_range = 16, autosummarize = on);
CREATE TABLE usage_customer_days_default PARTITION OF usage_customer_days DEFAULT WITH (fillfactor = 70);

-- The months of the hours that there are, under the names that the gateway gives them.
DO $$ DECLARE month timestamptz; BEGIN
  FOR month IN
    SELECT DISTINCT date_trunc('month', hour, 'UTC') FROM usage_by_hour
  LOOP
    EXECUTE format(
      'CREATE TABLE %I PARTITION OF usage_hours FOR VALUES FROM (%L) TO (%L) WITH (fillfactor = 70)',
      'usage_hours_' || to_char(month AT TIME ZONE 'UTC', 'YYYY_MM'), month, (month AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC'); --
  END LOOP; --
END $$;

INSERT INTO usage_hours (key_id, hour, plan_id, requests, successful, forwarded, forwarded_us)
SELECT key_id, hour, coalesce(plan_id, 'default'), requests, successful, forwarded, forwarded_us
FROM usage_by_hour JOIN consumer_keys ON consumer_keys.id = key_id
ORDER BY hour, key_id;

-- The version before goes on writing usage_by_hour until its last replica has ended: what it adds there is added here too.
CREATE FUNCTION usage_by_hour_to_usage_hours() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO usage_hours AS stored (key_id, hour, plan_id, requests, successful, forwarded, forwarded_us)
  SELECT NEW.key_id, NEW.hour, coalesce(plan_id, 'default'),
    NEW.requests - coalesce(OLD.requests, 0), NEW.successful - coalesce(OLD.successful, 0),
    NEW.forwarded - coalesce(OLD.forwarded, 0), NEW.forwarded_us - coalesce(OLD.forwarded_us, 0)
  FROM consumer_keys WHERE id = NEW.key_id
  ON CONFLICT (key_id, hour, plan_id) DO UPDATE SET
    requests = stored.requests + excluded.requests,
    successful = stored.successful + excluded.successful,
    forwarded = stored.forwarded + excluded.forwarded,
    forwarded_us = stored.forwarded_us + excluded.forwarded_us; --
  RETURN NULL; --
END $$;

CREATE TRIGGER usage_by_hour_to_usage_hours AFTER INSERT OR UPDATE ON usage_by_hour
FOR EACH ROW EXECUTE FUNCTION usage_by_hour_to_usage_hours();
