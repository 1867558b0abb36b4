-- How many of a day's requests came before 06:00, 12:00 and 18:00 of UTC, so that the keys of a span that is not whole days, such as the last
-- 24 hours, can be ranked with few of their hours. Kept as the sum of the day is.

-- In the order in which transactions that move usage lock; no row may be added between the sums and the triggers.
LOCK TABLE usage_hours IN SHARE ROW EXCLUSIVE MODE;

ALTER TABLE usage_key_days
  ADD COLUMN requests_before_6 bigint NOT NULL DEFAULT 0,
  ADD COLUMN requests_before_12 bigint NOT NULL DEFAULT 0,
  ADD COLUMN requests_before_18 bigint NOT NULL DEFAULT 0;

TRUNCATE usage_key_days;

INSERT INTO usage_key_days (day, key_id, plan_id, requests, requests_before_6, requests_before_12, requests_before_18)
SELECT (hour AT TIME ZONE 'UTC')::date AS day, key_id, plan_id, sum(requests),
  coalesce(sum(requests) FILTER (WHERE date_part('hour', hour AT TIME ZONE 'UTC') < 6), 0),
  coalesce(sum(requests) FILTER (WHERE date_part('hour', hour AT TIME ZONE 'UTC') < 12), 0),
  coalesce(sum(requests) FILTER (WHERE date_part('hour', hour AT TIME ZONE 'UTC') < 18), 0)
FROM usage_hours GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;

CREATE OR REPLACE FUNCTION add_inserted_to_usage_key_days() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
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

CREATE OR REPLACE FUNCTION add_updated_to_usage_key_days() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
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
