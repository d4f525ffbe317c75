-- Retry policies: which shapes a job or an endpoint may carry, and the delay a stored one chooses.
-- core/src/policy.rs holds the same rules and the same sentences for previews and early refusals; a test compares
-- the two over thousands of random policies.

-- The stored form of a policy, or `policy_invalid` naming the first fault. `field` is what the caller calls it.
-- Numbers are accepted in any spelling of an integer (1000, 1e3, 1000.0) and kept as integers.
create or replace function normalize_policy_as(policy jsonb, field text, presets boolean) returns jsonb
language plpgsql immutable parallel safe set search_path from current as $$
declare
  kind text := policy->>'type';
  keys text[];
  lows bigint[];
  highs bigint[];
  unknown text;
  low bigint;
  low_name text;
  value numeric;
  normalized jsonb;
begin
  if jsonb_typeof(policy) is distinct from 'object' then
    perform refuse('policy_invalid', field || ' must be a JSON object', jsonb_build_object('field', field));
  end if;
  if kind = 'fixed' then
    keys := '{delayMs}';
    lows := '{0}';
    highs := '{31536000000}';
  elsif kind = 'exponential' then
    keys := '{initialDelayMs,multiplier,maxDelayMs}';
    lows := '{0,1,0}';
    highs := '{31536000000,100,31536000000}';
  elsif kind = 'decorrelated-jitter' then
    keys := '{baseDelayMs,maxDelayMs}';
    lows := '{1,1}';
    highs := '{31536000000,31536000000}';
  elsif kind in ('standard', 'aggressive', 'relaxed') and presets then
    keys := '{}';
  elsif kind = 'custom' and presets then
    keys := '{maxAttempts,initialDelayMs,multiplier,maxDelayMs,jitterPercent}';
    lows := '{1,0,1,0,0}';
    highs := '{100,86400000,100,86400000,100}';
  elsif kind in ('standard', 'aggressive', 'relaxed', 'custom') then
    perform refuse('policy_invalid',
      format('%s.type: %s is for endpoints and contracts; a job takes fixed, exponential or decorrelated-jitter', field, kind),
      jsonb_build_object('field', field || '.type'));
  else
    perform refuse('policy_invalid', field || case when presets
        then '.type must be fixed, exponential, decorrelated-jitter, standard, aggressive, relaxed or custom'
        else '.type must be fixed, exponential or decorrelated-jitter' end,
      jsonb_build_object('field', field || '.type'));
  end if;
  select k into unknown from jsonb_object_keys(policy) k
    where k <> 'type' and k <> all (keys) order by k collate "C" limit 1;
  if found then
    unknown := field || '.' || left(unknown, 100);
    perform refuse('policy_invalid', 'unknown option: ' || unknown, jsonb_build_object('field', unknown));
  end if;
  case kind
    when 'standard' then
      return '{"type":"custom","maxAttempts":5,"initialDelayMs":30000,"multiplier":2,"maxDelayMs":900000,"jitterPercent":20}';
    when 'aggressive' then
      return '{"type":"custom","maxAttempts":8,"initialDelayMs":5000,"multiplier":2,"maxDelayMs":300000,"jitterPercent":20}';
    when 'relaxed' then
      return '{"type":"custom","maxAttempts":3,"initialDelayMs":120000,"multiplier":2,"maxDelayMs":1800000,"jitterPercent":20}';
    else
  end case;
  normalized := jsonb_build_object('type', kind);
  for i in 1 .. cardinality(keys) loop
    low := lows[i];
    low_name := '';
    -- A cap is never below what it caps, which stands before it in the list.
    if keys[i] = 'maxDelayMs' then
      low_name := case when kind = 'decorrelated-jitter' then 'baseDelayMs' else 'initialDelayMs' end;
      low := (normalized->>low_name)::bigint;
      low_name := format(' (%s)', low_name);
    end if;
    if not policy ? keys[i] then
      perform refuse('policy_invalid', format('%s.%s is missing', field, keys[i]), jsonb_build_object('field', field || '.' || keys[i]));
    end if;
    value := case when jsonb_typeof(policy->keys[i]) = 'number' then (policy->keys[i])::numeric end;
    if value is null or value <> trunc(value) or value < low or value > highs[i] then
      perform refuse('policy_invalid', format('%s.%s must be an integer from %s%s to %s', field, keys[i], low, low_name, highs[i]),
        jsonb_build_object('field', field || '.' || keys[i], 'low', low, 'high', highs[i]));
    end if;
    normalized := normalized || jsonb_build_object(keys[i], value::bigint);
  end loop;
  return normalized;
end $$;

-- A job's own policy.
create or replace function normalize_policy(policy jsonb, field text default 'retryPolicy') returns jsonb
language sql immutable parallel safe set search_path from current
as 'select normalize_policy_as(policy, field, false)';

-- The policy of an endpoint or a contract, which may also be a preset or custom.
create or replace function normalize_endpoint_policy(policy jsonb, field text default 'retryPolicy') returns jsonb
language sql immutable parallel safe set search_path from current
as 'select normalize_policy_as(policy, field, true)';

-- A number from low to high that depends on the job, the attempt and `previous` and on nothing else, so that
-- replaying a transition selects the same delay: 63 bits of SHA-256.
create or replace function jitter_draw(job uuid, attempt int, previous bigint, low bigint, high bigint) returns bigint
language sql immutable strict parallel safe as $$
  select low + (('x' || encode(substring(sha256('drayhorse/jitter/1'::bytea
      || uuid_send(job) || int4send(attempt) || int8send(previous)) from 1 for 8), 'hex'))::bit(64)::bigint
    & 9223372036854775807) % (high - low + 1)
$$;

-- initial * multiplier^(attempt-1), at most cap. With a multiplier of 2 or more the 40th power has passed every cap
-- there is (2^40 ms is 34 years), so a larger exponent cannot change the result and is not computed: it would
-- overflow even numeric.
create or replace function policy_growth(initial bigint, multiplier bigint, cap bigint, attempt int) returns bigint
language sql immutable strict parallel safe
as 'select least(cap, initial * power(multiplier::numeric, least(attempt - 1, 40)))::bigint';

-- The delay in ms that a normalized policy chooses after attempt number `attempt` of `job` has failed: a pure
-- function of the three. The draw of decorrelated jitter depends on the draw before it, so its chain is walked from
-- the first attempt. No budget exceeds 100 attempts; the bound of 10,000 keeps any call below some 50 ms.
create or replace function policy_delay(policy jsonb, job uuid, attempt int) returns bigint
language plpgsql immutable strict parallel safe set search_path from current as $$
declare
  kind text := policy->>'type';
  base bigint;
  cap bigint;
  previous bigint;
  percent bigint;
begin
  if attempt < 1 or kind = 'decorrelated-jitter' and attempt > 10000 then
    perform refuse('invalid_argument', format('attempt must be an integer from 1 to %s',
        case when kind = 'decorrelated-jitter' then 10000 else 2147483647 end), '{"field":"attempt"}');
  end if;
  if kind = 'fixed' then
    return (policy->>'delayMs')::bigint;
  end if;
  cap := (policy->>'maxDelayMs')::bigint;
  if kind = 'exponential' then
    return policy_growth((policy->>'initialDelayMs')::bigint, (policy->>'multiplier')::bigint, cap, attempt);
  elsif kind = 'decorrelated-jitter' then
    base := (policy->>'baseDelayMs')::bigint;
    previous := base;
    for i in 1 .. attempt loop
      previous := jitter_draw(job, i, previous, base, least(cap, greatest(base, 3 * previous)));
    end loop;
    return previous;
  elsif kind = 'custom' then
    -- The cap is applied to the window, not to the draw: capped waves still spread.
    base := policy_growth((policy->>'initialDelayMs')::bigint, (policy->>'multiplier')::bigint, cap, attempt);
    percent := (policy->>'jitterPercent')::bigint;
    return jitter_draw(job, attempt, 0, (base * (100 - percent) + 99) / 100, least(cap, base * (100 + percent) / 100));
  end if;
  perform refuse('policy_invalid', 'the stored policy is not normalized', '{"field":"policy"}');
end $$;

-- How the timeline names a delay that this policy chose.
create or replace function policy_source(policy jsonb) returns text
language sql immutable strict parallel safe as $$ select 'policy:' || (policy->>'type') $$;

-- The delay in ms of a job without a policy after an error or a timeout: (attempt-1)^4 + 15 + floor(10 r) * attempt
-- seconds, r in [0, 1). 100 years at most, which no budget reaches and every timestamp can hold.
create or replace function compatibility_delay(attempt int, r double precision) returns bigint
language sql immutable strict parallel safe
as 'select (least(3153600000, power((attempt - 1)::numeric, 4) + 15 + floor(10 * r)::numeric * attempt) * 1000)::bigint';

create or replace function compatibility_delay(attempt int) returns bigint
language sql volatile strict parallel restricted set search_path from current
as 'select compatibility_delay(attempt, random())';
