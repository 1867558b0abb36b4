-- Several limits in a plan, what requests cost, and another limit for one key.
--
-- The version before knows nothing of these columns: it reads and writes plans and keys as if they were not there.

ALTER TABLE plans
  -- A list: limits beside the plan's own, as their author wrote them.
  ADD COLUMN additional_limits jsonb NOT NULL DEFAULT '[]',
  -- A list: what requests cost, the first match counts.
  ADD COLUMN costs jsonb NOT NULL DEFAULT '[]';

ALTER TABLE consumer_keys
  -- By limitId: another limit than the plan's, and until when in milliseconds since 1970.
  ADD COLUMN overrides jsonb NOT NULL DEFAULT '{}';
