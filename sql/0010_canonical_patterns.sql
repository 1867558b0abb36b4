-- Brings the patterns of plans into the canonical form in which they are compared and written since: literal segments percent-decoded, with
-- %2F as a slash, and in lower case unless PATH_CASE=sensitive. Wildcards, their names and everything else of a plan stay. A pattern without
-- a canonical form (with ";", or one that no request can match) stays as it is, and is compared with paths as they are sent.
--
-- The version before compares these patterns with paths as they are sent, in their case.

CREATE FUNCTION canonical_literal(segment text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  ignores_case boolean := current_setting('tollgate.path_case', true) IS DISTINCT FROM 'sensitive'; --
  rest text := segment; --
  made text := ''; --
  code int; --
  letter text; --
BEGIN
  WHILE rest <> '' LOOP
    letter := left(rest, 1); --
    code := NULL; --
    IF rest ~ '^%[0-9A-Fa-f][0-9A-Fa-f]' THEN
      letter := upper(left(rest, 3)); --
      code := get_byte(decode(substr(letter, 2), 'hex'), 0); --
      rest := substr(rest, 4); --
    ELSE
      rest := substr(rest, 2); --
    END IF; --
    -- Decoded, these would be wildcards, end the path, begin another escape, or could not stand in a path.
    IF code > 32 AND code < 127 AND code NOT IN (35, 37, 42, 63, 123, 125) THEN
      letter := chr(code); --
    END IF; --
    made := made || CASE WHEN ignores_case AND length(letter) = 1 THEN lower(letter COLLATE "C") ELSE letter END; --
  END LOOP; --
  RETURN made; --
END $$;

CREATE FUNCTION is_wildcard(segment text) RETURNS boolean LANGUAGE sql AS
  'SELECT segment IN (''*'', ''**'') OR segment LIKE ''{%''';

CREATE FUNCTION canonical_pattern(path text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  made text; --
  has_fault boolean; --
BEGIN
  SELECT string_agg(CASE WHEN is_wildcard(segment) THEN segment ELSE canonical_literal(segment) END, '/' ORDER BY place)
    INTO made FROM unnest(string_to_array(path, '/')) WITH ORDINALITY AS segments (segment, place); --
  SELECT made LIKE '%//%' OR bool_or(segment ~ '[;\\]|%([01].|7F)' OR segment IN ('.', '..'))
    INTO has_fault FROM unnest(string_to_array(made, '/')) AS segment WHERE NOT is_wildcard(segment); --
  RETURN CASE WHEN has_fault THEN path ELSE made END; --
END $$;

CREATE FUNCTION with_canonical_paths(patterns jsonb) RETURNS jsonb LANGUAGE sql AS $$
  SELECT coalesce(jsonb_agg(pattern || jsonb_build_object('path', canonical_pattern(pattern ->> 'path')) ORDER BY place), '[]')
  FROM jsonb_array_elements(patterns) WITH ORDINALITY AS listed (pattern, place)
$$;

CREATE FUNCTION with_canonical_matches(limits jsonb) RETURNS jsonb LANGUAGE sql AS $$
  SELECT coalesce(jsonb_agg(
    CASE WHEN entry ? 'match' THEN entry || jsonb_build_object('match', with_canonical_paths(entry -> 'match')) ELSE entry END
    ORDER BY place), '[]')
  FROM jsonb_array_elements(limits) WITH ORDINALITY AS listed (entry, place)
$$;

-- A value as src/desired-state/written-state.ts writes it for a digest: fields as pairs, sorted by name.
CREATE FUNCTION in_order(value jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  made text; --
BEGIN
  IF jsonb_typeof(value) = 'array' THEN
    SELECT string_agg(in_order(element), ',' ORDER BY place)
      INTO made FROM jsonb_array_elements(value) WITH ORDINALITY AS elements (element, place); --
  ELSIF jsonb_typeof(value) = 'object' THEN
    SELECT string_agg('[' || to_json(name)::text || ',' || in_order(field) || ']', ',' ORDER BY name COLLATE "C")
      INTO made FROM jsonb_each(value) AS fields (name, field); --
  ELSE
    RETURN value::text; --
  END IF; --
  RETURN '[' || coalesce(made, '') || ']'; --
END $$;

CREATE FUNCTION digest_of(plan plans) RETURNS bytea LANGUAGE sql AS $$
  SELECT sha256(convert_to(in_order(jsonb_strip_nulls(jsonb_build_object(
    'rateLimitId', plan.id, 'description', plan.description, 'limit', plan."limit", 'period', plan.period,
    'additionalLimits', nullif(plan.additional_limits, '[]'), 'costs', nullif(plan.costs, '[]')))), 'UTF8'))
$$;

-- A configuration that left a plan in its present state has left it in the canonical one: the plan does not count as changed elsewhere.
CREATE TABLE canonical_plans AS
SELECT id, managed_digest = digest_of(plans) AS is_as_managed,
  with_canonical_matches(additional_limits) AS additional_limits, with_canonical_paths(costs) AS costs
FROM plans;

UPDATE plans SET additional_limits = canonical_plans.additional_limits, costs = canonical_plans.costs
FROM canonical_plans
WHERE plans.id = canonical_plans.id
  AND (plans.additional_limits, plans.costs) IS DISTINCT FROM (canonical_plans.additional_limits, canonical_plans.costs);

UPDATE plans SET managed_digest = digest_of(plans)
FROM canonical_plans
WHERE plans.id = canonical_plans.id AND canonical_plans.is_as_managed;

DROP TABLE canonical_plans;
DROP FUNCTION digest_of(plans), in_order(jsonb), with_canonical_matches(jsonb), with_canonical_paths(jsonb), canonical_pattern(text),
  is_wildcard(text), canonical_literal(text);
