-- Usage over time.
--
-- The tables have no reference to the key: they outlive it, so that last month's bill does not change. They are partitioned by month of
-- UTC. The gateway makes the partitions ahead and drops those that are too old; a row without a month of its own is in the default partition.
-- Every row says under which plan its requests were made: '' = under none. Counts mean what they do in the totals.

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

-- The hours of all keys together, so that their sums need not be made of millions of rows when they are read.
--
-- Kept by triggers, in the transaction that changes usage_hours: the two always agree. Each connection adds to rows of its own
-- (slot), so that transactions that move different keys seldom wait for each other; only the sum over slots means anything.

CREATE TABLE usage_total_hours (
  hour timestamptz(0) NOT NULL,
  plan_id text COLLATE "C" NOT NULL,
  slot smallint NOT NULL,
  requests bigint NOT NULL,
  successful bigint NOT NULL,
  forwarded bigint NOT NULL,
  forwarded_us bigint NOT NULL,
  rate_limited bigint NOT NULL,
  client_errors bigint NOT NULL,
  server_errors bigint NOT NULL,
  shadow_limited bigint NOT NULL,
  bytes_in bigint NOT NULL,
  bytes_out bigint NOT NULL,
  PRIMARY KEY (hour, plan_id, slot)
) WITH (fillfactor = 50);

-- Adds the rows that a statement changed, or takes them away: the trigger's argument is 1 or -1.
CREATE FUNCTION add_to_usage_total_hours() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE sign integer := TG_ARGV[0]; BEGIN
  INSERT INTO usage_total_hours AS stored
  SELECT hour, plan_id, pg_backend_pid() % 64, sign * sum(requests), sign * sum(successful), sign * sum(forwarded),
    sign * sum(forwarded_us), sign * sum(rate_limited), sign * sum(client_errors), sign * sum(server_errors),
    sign * sum(shadow_limited), sign * sum(bytes_in), sign * sum(bytes_out)
  FROM changed GROUP BY hour, plan_id ORDER BY hour, plan_id
  ON CONFLICT (hour, plan_id, slot) DO UPDATE SET
    requests = stored.requests + excluded.requests,
    successful = stored.successful + excluded.successful,
    forwarded = stored.forwarded + excluded.forwarded,
    forwarded_us = stored.forwarded_us + excluded.forwarded_us,
    rate_limited = stored.rate_limited + excluded.rate_limited,
    client_errors = stored.client_errors + excluded.client_errors,
    server_errors = stored.server_errors + excluded.server_errors,
    shadow_limited = stored.shadow_limited + excluded.shadow_limited,
    bytes_in = stored.bytes_in + excluded.bytes_in,
    bytes_out = stored.bytes_out + excluded.bytes_out; --
  RETURN NULL; --
END $$;

CREATE TRIGGER add_inserted_to_total_hours AFTER INSERT ON usage_hours REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION add_to_usage_total_hours('1');

CREATE TRIGGER add_updated_to_total_hours AFTER UPDATE ON usage_hours REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION add_to_usage_total_hours('1');

CREATE TRIGGER take_updated_from_total_hours AFTER UPDATE ON usage_hours REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION add_to_usage_total_hours('-1');

-- The requests of each key by day, so that the keys of a long span can be ranked without all of their hours; and how many of them came before
-- 06:00, 12:00 and 18:00 of UTC, for spans that are not whole days, such as the last 24 hours. Kept by triggers, in the transaction that
-- changes usage_hours: the two always agree, as far as hours are kept. Pruned as usage_hours is.

CREATE TABLE usage_key_days (
  -- In UTC.
  day date NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  plan_id text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  requests_before_6 bigint NOT NULL DEFAULT 0,
  requests_before_12 bigint NOT NULL DEFAULT 0,
  requests_before_18 bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (day, key_id, plan_id)
) PARTITION BY RANGE (day);

CREATE TABLE usage_key_days_default PARTITION OF usage_key_days DEFAULT WITH (fillfactor = 70);

CREATE FUNCTION add_inserted_to_usage_key_days() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO usage_key_days AS stored
    (day, key_id, plan_id, requests, requests_before_6, requests_before_12, requests_before_18)
  SELECT (hour AT TIME ZONE 'UTC')::date, key_id, plan_id, sum(requests),
    coalesce(sum(requests) FILTER (WHERE date_part('hour', hour AT TIME ZONE 'UTC') < 6), 0),
    coalesce(sum(requests) FILTER (WHERE date_part('hour', hour AT TIME ZONE 'UTC') < 12), 0),
    coalesce(sum(requests) FILTER (WHERE date_part('hour', hour AT TIME ZONE 'UTC') < 18), 0)
  FROM inserted GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (day, key_id, plan_id) DO UPDATE SET
    requests = stored.requests + excluded.requests,
    requests_before_6 = stored.requests_before_6 + excluded.requests_before_6,
    requests_before_12 = stored.requests_before_12 + excluded.requests_before_12,
    requests_before_18 = stored.requests_before_18 + excluded.requests_before_18; --
  RETURN NULL; --
END $$;

CREATE FUNCTION add_updated_to_usage_key_days() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO usage_key_days AS stored
    (day, key_id, plan_id, requests, requests_before_6, requests_before_12, requests_before_18)
  SELECT (hour AT TIME ZONE 'UTC')::date, key_id, plan_id, sum(requests),
    coalesce(sum(requests) FILTER (WHERE date_part('hour', hour AT TIME ZONE 'UTC') < 6), 0),
    coalesce(sum(requests) FILTER (WHERE date_part('hour', hour AT TIME ZONE 'UTC') < 12), 0),
    coalesce(sum(requests) FILTER (WHERE date_part('hour', hour AT TIME ZONE 'UTC') < 18), 0)
  FROM (
    SELECT hour, key_id, plan_id, requests FROM after
    UNION ALL
    SELECT hour, key_id, plan_id, -requests FROM before
  ) AS changed GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (day, key_id, plan_id) DO UPDATE SET
    requests = stored.requests + excluded.requests,
    requests_before_6 = stored.requests_before_6 + excluded.requests_before_6,
    requests_before_12 = stored.requests_before_12 + excluded.requests_before_12,
    requests_before_18 = stored.requests_before_18 + excluded.requests_before_18; --
  RETURN NULL; --
END $$;

CREATE TRIGGER add_inserted_to_key_days AFTER INSERT ON usage_hours REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION add_inserted_to_usage_key_days();

CREATE TRIGGER add_updated_to_key_days AFTER UPDATE ON usage_hours REFERENCING OLD TABLE AS before NEW TABLE AS after
FOR EACH STATEMENT EXECUTE FUNCTION add_updated_to_usage_key_days();
