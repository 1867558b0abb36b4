-- The requests of each hour in the days of keys, so that a preview of a plan compares one row a day with its limits instead of 24.
--
-- The version before works on: the triggers fill the columns for it, too. While this runs, replicas wait with what they move from Redis.

-- First, as in the transactions that move usage: none of them runs a trigger of before after this one.
LOCK TABLE usage_hours IN SHARE ROW EXCLUSIVE MODE;

ALTER TABLE usage_key_days
  ADD COLUMN rate_limited bigint NOT NULL DEFAULT 0,
  -- Of the hour of UTC that begins then.
  ADD COLUMN requests_0 bigint NOT NULL DEFAULT 0, ADD COLUMN requests_1 bigint NOT NULL DEFAULT 0,
  ADD COLUMN requests_2 bigint NOT NULL DEFAULT 0, ADD COLUMN requests_3 bigint NOT NULL DEFAULT 0,
  ADD COLUMN requests_4 bigint NOT NULL DEFAULT 0, ADD COLUMN requests_5 bigint NOT NULL DEFAULT 0,
  ADD COLUMN requests_6 bigint NOT NULL DEFAULT 0, ADD COLUMN requests_7 bigint NOT NULL DEFAULT 0,
  ADD COLUMN requests_8 bigint NOT NULL DEFAULT 0, ADD COLUMN requests_9 bigint NOT NULL DEFAULT 0,
  ADD COLUMN requests_10 bigint NOT NULL DEFAULT 0, ADD COLUMN requests_11 bigint NOT NULL DEFAULT 0,
  ADD COLUMN requests_12 bigint NOT NULL DEFAULT 0, ADD COLUMN requests_13 bigint NOT NULL DEFAULT 0,
  ADD COLUMN requests_14 bigint NOT NULL DEFAULT 0, ADD COLUMN requests_15 bigint NOT NULL DEFAULT 0,
  ADD COLUMN requests_16 bigint NOT NULL DEFAULT 0, ADD COLUMN requests_17 bigint NOT NULL DEFAULT 0,
  ADD COLUMN requests_18 bigint NOT NULL DEFAULT 0, ADD COLUMN requests_19 bigint NOT NULL DEFAULT 0,
  ADD COLUMN requests_20 bigint NOT NULL DEFAULT 0, ADD COLUMN requests_21 bigint NOT NULL DEFAULT 0,
  ADD COLUMN requests_22 bigint NOT NULL DEFAULT 0, ADD COLUMN requests_23 bigint NOT NULL DEFAULT 0;

CREATE OR REPLACE FUNCTION add_inserted_to_usage_key_days() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO usage_key_days AS stored
    (day, key_id, plan_id, requests, requests_before_6, requests_before_12, requests_before_18, rate_limited,
    requests_0, requests_1, requests_2, requests_3, requests_4, requests_5,
    requests_6, requests_7, requests_8, requests_9, requests_10, requests_11,
    requests_12, requests_13, requests_14, requests_15, requests_16, requests_17,
    requests_18, requests_19, requests_20, requests_21, requests_22, requests_23)
  SELECT (hour AT TIME ZONE 'UTC')::date, key_id, plan_id, sum(requests),
    coalesce(sum(requests) FILTER (WHERE hour_of_day < 6), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day < 12), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day < 18), 0),
    sum(rate_limited),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 0), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 1), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 2), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 3), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 4), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 5), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 6), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 7), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 8), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 9), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 10), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 11), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 12), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 13), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 14), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 15), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 16), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 17), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 18), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 19), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 20), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 21), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 22), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 23), 0)
  FROM (
    SELECT hour, key_id, plan_id, requests, rate_limited FROM inserted
  ) AS changed CROSS JOIN LATERAL date_part('hour', hour AT TIME ZONE 'UTC') AS hour_of_day
  GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (day, key_id, plan_id) DO UPDATE SET
    requests = stored.requests + excluded.requests,
    requests_before_6 = stored.requests_before_6 + excluded.requests_before_6,
    requests_before_12 = stored.requests_before_12 + excluded.requests_before_12,
    requests_before_18 = stored.requests_before_18 + excluded.requests_before_18,
    rate_limited = stored.rate_limited + excluded.rate_limited,
    requests_0 = stored.requests_0 + excluded.requests_0, requests_1 = stored.requests_1 + excluded.requests_1,
    requests_2 = stored.requests_2 + excluded.requests_2, requests_3 = stored.requests_3 + excluded.requests_3,
    requests_4 = stored.requests_4 + excluded.requests_4, requests_5 = stored.requests_5 + excluded.requests_5,
    requests_6 = stored.requests_6 + excluded.requests_6, requests_7 = stored.requests_7 + excluded.requests_7,
    requests_8 = stored.requests_8 + excluded.requests_8, requests_9 = stored.requests_9 + excluded.requests_9,
    requests_10 = stored.requests_10 + excluded.requests_10, requests_11 = stored.requests_11 + excluded.requests_11,
    requests_12 = stored.requests_12 + excluded.requests_12, requests_13 = stored.requests_13 + excluded.requests_13,
    requests_14 = stored.requests_14 + excluded.requests_14, requests_15 = stored.requests_15 + excluded.requests_15,
    requests_16 = stored.requests_16 + excluded.requests_16, requests_17 = stored.requests_17 + excluded.requests_17,
    requests_18 = stored.requests_18 + excluded.requests_18, requests_19 = stored.requests_19 + excluded.requests_19,
    requests_20 = stored.requests_20 + excluded.requests_20, requests_21 = stored.requests_21 + excluded.requests_21,
    requests_22 = stored.requests_22 + excluded.requests_22, requests_23 = stored.requests_23 + excluded.requests_23; --
  RETURN NULL; --
END $$;

CREATE OR REPLACE FUNCTION add_updated_to_usage_key_days() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO usage_key_days AS stored
    (day, key_id, plan_id, requests, requests_before_6, requests_before_12, requests_before_18, rate_limited,
    requests_0, requests_1, requests_2, requests_3, requests_4, requests_5,
    requests_6, requests_7, requests_8, requests_9, requests_10, requests_11,
    requests_12, requests_13, requests_14, requests_15, requests_16, requests_17,
    requests_18, requests_19, requests_20, requests_21, requests_22, requests_23)
  SELECT (hour AT TIME ZONE 'UTC')::date, key_id, plan_id, sum(requests),
    coalesce(sum(requests) FILTER (WHERE hour_of_day < 6), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day < 12), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day < 18), 0),
    sum(rate_limited),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 0), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 1), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 2), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 3), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 4), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 5), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 6), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 7), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 8), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 9), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 10), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 11), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 12), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 13), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 14), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 15), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 16), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 17), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 18), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 19), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 20), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 21), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 22), 0),
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 23), 0)
  FROM (
    SELECT hour, key_id, plan_id, requests, rate_limited FROM after
    UNION ALL
    SELECT hour, key_id, plan_id, -requests, -rate_limited FROM before
  ) AS changed CROSS JOIN LATERAL date_part('hour', hour AT TIME ZONE 'UTC') AS hour_of_day
  GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (day, key_id, plan_id) DO UPDATE SET
    requests = stored.requests + excluded.requests,
    requests_before_6 = stored.requests_before_6 + excluded.requests_before_6,
    requests_before_12 = stored.requests_before_12 + excluded.requests_before_12,
    requests_before_18 = stored.requests_before_18 + excluded.requests_before_18,
    rate_limited = stored.rate_limited + excluded.rate_limited,
    requests_0 = stored.requests_0 + excluded.requests_0, requests_1 = stored.requests_1 + excluded.requests_1,
    requests_2 = stored.requests_2 + excluded.requests_2, requests_3 = stored.requests_3 + excluded.requests_3,
    requests_4 = stored.requests_4 + excluded.requests_4, requests_5 = stored.requests_5 + excluded.requests_5,
    requests_6 = stored.requests_6 + excluded.requests_6, requests_7 = stored.requests_7 + excluded.requests_7,
    requests_8 = stored.requests_8 + excluded.requests_8, requests_9 = stored.requests_9 + excluded.requests_9,
    requests_10 = stored.requests_10 + excluded.requests_10, requests_11 = stored.requests_11 + excluded.requests_11,
    requests_12 = stored.requests_12 + excluded.requests_12, requests_13 = stored.requests_13 + excluded.requests_13,
    requests_14 = stored.requests_14 + excluded.requests_14, requests_15 = stored.requests_15 + excluded.requests_15,
    requests_16 = stored.requests_16 + excluded.requests_16, requests_17 = stored.requests_17 + excluded.requests_17,
    requests_18 = stored.requests_18 + excluded.requests_18, requests_19 = stored.requests_19 + excluded.requests_19,
    requests_20 = stored.requests_20 + excluded.requests_20, requests_21 = stored.requests_21 + excluded.requests_21,
    requests_22 = stored.requests_22 + excluded.requests_22, requests_23 = stored.requests_23 + excluded.requests_23; --
  RETURN NULL; --
END $$;

-- No preview looks further back.
UPDATE usage_key_days AS stored SET
  rate_limited = hours.rate_limited,
  requests_0 = hours.requests_0, requests_1 = hours.requests_1, requests_2 = hours.requests_2, requests_3 = hours.requests_3,
  requests_4 = hours.requests_4, requests_5 = hours.requests_5, requests_6 = hours.requests_6, requests_7 = hours.requests_7,
  requests_8 = hours.requests_8, requests_9 = hours.requests_9, requests_10 = hours.requests_10, requests_11 = hours.requests_11,
  requests_12 = hours.requests_12, requests_13 = hours.requests_13, requests_14 = hours.requests_14, requests_15 = hours.requests_15,
  requests_16 = hours.requests_16, requests_17 = hours.requests_17, requests_18 = hours.requests_18, requests_19 = hours.requests_19,
  requests_20 = hours.requests_20, requests_21 = hours.requests_21, requests_22 = hours.requests_22, requests_23 = hours.requests_23
FROM (
  SELECT (hour AT TIME ZONE 'UTC')::date AS day, key_id, plan_id, sum(rate_limited) AS rate_limited,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 0), 0) AS requests_0,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 1), 0) AS requests_1,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 2), 0) AS requests_2,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 3), 0) AS requests_3,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 4), 0) AS requests_4,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 5), 0) AS requests_5,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 6), 0) AS requests_6,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 7), 0) AS requests_7,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 8), 0) AS requests_8,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 9), 0) AS requests_9,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 10), 0) AS requests_10,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 11), 0) AS requests_11,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 12), 0) AS requests_12,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 13), 0) AS requests_13,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 14), 0) AS requests_14,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 15), 0) AS requests_15,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 16), 0) AS requests_16,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 17), 0) AS requests_17,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 18), 0) AS requests_18,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 19), 0) AS requests_19,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 20), 0) AS requests_20,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 21), 0) AS requests_21,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 22), 0) AS requests_22,
    coalesce(sum(requests) FILTER (WHERE hour_of_day = 23), 0) AS requests_23
  -- Computed once a row.
  FROM usage_hours CROSS JOIN LATERAL date_part('hour', hour AT TIME ZONE 'UTC') AS hour_of_day
  WHERE hour >= date_trunc('day', now(), 'UTC') - interval '29 days'
  GROUP BY 1, 2, 3
) AS hours
WHERE stored.day = hours.day AND stored.key_id = hours.key_id AND stored.plan_id = hours.plan_id;
