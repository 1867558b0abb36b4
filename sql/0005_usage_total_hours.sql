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

-- No row may be added between the sums and the triggers.
LOCK TABLE usage_hours IN SHARE ROW EXCLUSIVE MODE;

INSERT INTO usage_total_hours
SELECT hour, plan_id, 0, sum(requests), sum(successful), sum(forwarded), sum(forwarded_us), sum(rate_limited),
  sum(client_errors), sum(server_errors), sum(shadow_limited), sum(bytes_in), sum(bytes_out)
FROM usage_hours GROUP BY hour, plan_id;

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
