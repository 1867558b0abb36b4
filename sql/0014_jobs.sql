-- Changes of many keys at once, which outlive the replica that was asked for them.
--
-- The version before knows nothing of these tables: it leaves jobs to the replicas of this version. Where it verifies the audit log, it
-- takes the entries of a job for changed ones.

CREATE TABLE jobs (
  id text COLLATE "C" PRIMARY KEY,
  created_at timestamptz(3) NOT NULL,
  action text COLLATE "C" NOT NULL,
  -- What the action changes, as JSON. Null: it deletes.
  changes text,
  -- running, done, cancelled or stopped.
  state text COLLATE "C" NOT NULL DEFAULT 'running',
  ended_at timestamptz(3),
  total integer NOT NULL,
  -- The keys before this position were dealt with.
  position integer NOT NULL DEFAULT 0,
  -- How many of them were not changed.
  failed integer NOT NULL DEFAULT 0,
  -- Who made it, as in the audit log, and with which tags.
  actor_type text NOT NULL,
  actor_id text,
  actor_name text NOT NULL,
  only_tags text[] NOT NULL,
  reason text,
  request_id text NOT NULL,
  address text NOT NULL,
  -- The replica that works on it, until an instant by the clock of this database. Null: none does.
  holder text,
  held_until timestamptz(3),
  CHECK ((state = 'running') = (ended_at IS NULL)),
  CHECK (position BETWEEN 0 AND total)
) WITH (fillfactor = 50);

-- Empty while nothing is to be done: looking for work reads one page.
CREATE INDEX jobs_running ON jobs (id) WHERE state = 'running';

CREATE TABLE job_keys (
  job_id text COLLATE "C" NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  position integer NOT NULL,
  -- No reference: the key may be deleted meanwhile.
  key_id text COLLATE "C" NOT NULL,
  -- The code of the error with which its change was rejected. Null: it was made, or is still to come.
  code text,
  PRIMARY KEY (job_id, position)
);

CREATE INDEX job_keys_failed ON job_keys (job_id, position) WHERE code IS NOT NULL;

-- The job that a change belongs to. Null: none.
ALTER TABLE audit_log ADD COLUMN job_id text COLLATE "C";

CREATE INDEX audit_log_job_id ON audit_log (job_id, sequence) WHERE job_id IS NOT NULL;
