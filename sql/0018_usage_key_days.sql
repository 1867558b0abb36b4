-- The requests of each key by day, so that the keys of a long span can be ranked without all of their hours. A row outlives its key.
--
-- Kept by triggers, in the transaction that changes usage_hours, whichever version of the gateway does: the two always agree, as far
-- as hours are kept. Partitioned by month and pruned as usage_hours is.

CREATE TABLE usage_key_days (
  -- In UTC.
  day date NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  plan_id text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  PRIMARY KEY (day, key_id, plan_id)
) PARTITION BY RANGE (day);

CREATE TABLE usage_key_days_default PARTITION OF usage_key_days DEFAULT WITH (fillfactor = 70);

-- No row may be added between the sums and the triggers.
LOCK TABLE usage_hours IN SHARE ROW EXCLUSIVE MODE;

INSERT INTO usage_key_days (day, key_id, plan_id, requests)
SELECT (hour AT TIME ZONE 'UTC')::date AS day, key_id, plan_id, sum(requests)
FROM usage_hours GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;

CREATE FUNCTION add_inserted_to_usage_key_days() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO usage_key_days AS stored (day, key_id, plan_id, requests)
  SELECT (hour AT TIME ZONE 'UTC')::date, key_id, plan_id, sum(requests)
  FROM inserted GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (day, key_id, plan_id) DO UPDATE SET requests = stored.requests + excluded.requests; --
  RETURN NULL; --
END $$;

CREATE FUNCTION add_updated_to_usage_key_days() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO usage_key_days AS stored (day, key_id, plan_id, requests)
  SELECT (hour AT TIME ZONE 'UTC')::date, key_id, plan_id, sum(requests)
  FROM (
    SELECT hour, key_id, plan_id, requests FROM after
    UNION ALL
    SELECT hour, key_id, plan_id, -requests FROM before
  ) AS changed GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (day, key_id, plan_id) DO UPDATE SET requests = stored.requests + excluded.requests; --
  RETURN NULL; --
END $$;

CREATE TRIGGER add_inserted_to_key_days AFTER INSERT ON usage_hours REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION add_inserted_to_usage_key_days();

CREATE TRIGGER add_updated_to_key_days AFTER UPDATE ON usage_hours REFERENCING OLD TABLE AS before NEW TABLE AS after
FOR EACH STATEMENT EXECUTE FUNCTION add_updated_to_usage_key_days();
