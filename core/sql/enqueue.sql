-- Enqueue: one JSON parameter in, one JSON text out, all or nothing.
-- A job without unusual options is checked by one expression inside the set; only the others, and refusals, pay
-- for `check_job`, which names the field and the bound.

-- Enqueue and settlement survive a crash of the database whatever the session or its role prefers; only claims without a
-- gate and heartbeats may be forgotten.
create or replace function commit_synchronously() returns void language plpgsql as $$
begin
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
end $$;

create or replace function uuid7() returns uuid language sql volatile parallel safe as $$
  select encode(overlay(overlay(uuid_send(gen_random_uuid())
    placing substring(int8send((extract(epoch from pg_catalog.clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6)
    placing decode('70', 'hex') from 7 for 1), 'hex')::uuid
$$;

create or replace function is_integer(value jsonb, low numeric, high numeric) returns boolean
language sql immutable parallel safe as $$
  select case when jsonb_typeof(value) = 'number'
    then value::numeric = trunc(value::numeric) and value::numeric between low and high else false end
$$;

create or replace function is_name(value jsonb, max_bytes int) returns boolean
language sql immutable parallel safe as $$
  select jsonb_typeof(value) = 'string' and octet_length(value #>> '{}') between 1 and max_bytes
$$;

-- Null unless the value is an RFC 3339 time with its zone, within what timestamptz and every SDK can hold.
create or replace function to_time(value jsonb) returns timestamptz language plpgsql stable set search_path from current as $$
begin
  if jsonb_typeof(value) = 'string'
     and value #>> '{}' ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})$' then
    -- A zone can move the first and the last day of that calendar out of it, where no SDK could read the time again.
    return least(timestamptz '9999-12-31T23:59:59.999999Z', greatest(timestamptz '0001-01-01T00:00:00Z', (value #>> '{}')::timestamptz));
  end if;
  return null;
exception when datetime_field_overflow or invalid_datetime_format or invalid_time_zone_displacement_value then
  return null;
end $$;

create or replace function check_integer(e jsonb, path text, field text, low numeric, high numeric) returns void
language plpgsql immutable set search_path from current as $$
begin
  if e ? field and not is_integer(e->field, low, high) then
    perform refuse('invalid_argument', format('%s%s must be an integer from %s to %s', path, field, low, high),
      jsonb_build_object('field', path || field, 'low', low, 'high', high));
  end if;
end $$;

create or replace function check_name(e jsonb, path text, field text, max_bytes int) returns void
language plpgsql immutable set search_path from current as $$
begin
  if e ? field and not is_name(e->field, max_bytes) then
    perform refuse('invalid_argument', format('%s%s must be 1 to %s bytes of UTF-8', path, field, max_bytes),
      jsonb_build_object('field', path || field, 'limit', max_bytes));
  end if;
end $$;

create or replace function check_time(e jsonb, path text, field text) returns void
language plpgsql stable set search_path from current as $$
begin
  if e ? field and to_time(e->field) is null then
    perform refuse('invalid_argument', format('%s%s must be an RFC 3339 time with its zone', path, field),
      jsonb_build_object('field', path || field));
  end if;
end $$;

-- A JSON value within its size and nesting. U+0000 and lone surrogates cannot even become jsonb.
create or replace function check_value(value jsonb, path text, max_bytes int) returns void
language plpgsql stable set search_path from current as $$
begin
  if octet_length(value::text) > max_bytes then
    perform refuse('payload_too_large', format('%s is %s bytes of JSON; the limit is %s', path, octet_length(value::text), max_bytes),
      jsonb_build_object('path', path, 'limit', max_bytes));
  end if;
  if nested_too_deep(value) then
    perform refuse('payload_invalid', format('%s: nesting over 100', path), jsonb_build_object('path', path, 'limit', 100));
  end if;
end $$;

create or replace function nested_too_deep(value jsonb) returns boolean language sql immutable parallel safe as $$
  select pg_column_size(value) > 800
    and jsonb_path_exists(value, 'strict $.**{100} ? (@.type() == "object" || @.type() == "array")')
$$;

create or replace function job_keys() returns text[] language sql immutable parallel safe as $$
  select array['id', 'type', 'payload', 'queue', 'version', 'priority', 'runAt', 'delayMs', 'deadline', 'deadlineMs',
    'timeoutMs', 'maxAttempts', 'retryPolicy', 'tags', 'idempotencyKey', 'endpoint', 'after', 'synthetic', 'runId']
$$;

-- Refuses the first fault of one job by name. `path` is '' or 'jobs[3].'.
create or replace function check_job(e jsonb, path text, max_bytes int) returns void
language plpgsql stable set search_path from current as $$
declare
  unknown text;
  k jsonb;
begin
  if jsonb_typeof(e) is distinct from 'object' then
    perform refuse('invalid_argument', format('%s must be a JSON object', coalesce(nullif(rtrim(path, '.'), ''), 'the job')),
      jsonb_build_object('field', rtrim(path, '.')));
  end if;
  select key into unknown from jsonb_object_keys(e) key where key <> all (job_keys()) order by key collate "C" limit 1;
  if found then
    perform refuse('invalid_argument', format('unknown option: %s', path || left(unknown, 100)),
      jsonb_build_object('field', path || left(unknown, 100)));
  end if;
  if not e ? 'type' then
    perform refuse('invalid_argument', path || 'type is missing', jsonb_build_object('field', path || 'type'));
  end if;
  perform check_name(e, path, 'type', 200);
  perform check_name(e, path, 'queue', 200);
  perform check_name(e, path, 'version', 200);
  perform check_name(e, path, 'endpoint', 200);
  perform check_integer(e, path, 'priority', -100, 100);
  perform check_integer(e, path, 'maxAttempts', 1, 100);
  perform check_integer(e, path, 'delayMs', 0, 3153600000000);
  perform check_integer(e, path, 'deadlineMs', 0, 3153600000000);
  perform check_integer(e, path, 'timeoutMs', 1, 31536000000);
  perform check_time(e, path, 'runAt');
  perform check_time(e, path, 'deadline');
  if e ? 'runAt' and e ? 'delayMs' then
    perform refuse('invalid_argument', path || 'runAt and delayMs exclude each other', jsonb_build_object('field', path || 'runAt'));
  end if;
  if e ? 'deadline' and e ? 'deadlineMs' then
    perform refuse('invalid_argument', path || 'deadline and deadlineMs exclude each other', jsonb_build_object('field', path || 'deadline'));
  end if;
  if e ? 'retryPolicy' then
    perform normalize_policy(e->'retryPolicy', path || 'retryPolicy');
  end if;
  if e ? 'tags' then
    if jsonb_typeof(e->'tags') <> 'array' or jsonb_array_length(e->'tags') > 20
       or exists (select from jsonb_array_elements(e->'tags') t
                  where jsonb_typeof(t) <> 'string' or char_length(t #>> '{}') not between 1 and 100) then
      perform refuse('invalid_argument', path || 'tags must be at most 20 strings of 1 to 100 characters',
        jsonb_build_object('field', path || 'tags'));
    end if;
  end if;
  if e ? 'idempotencyKey' then
    k := e->'idempotencyKey';
    if jsonb_typeof(k) <> 'object' or not k ? 'key' or k - array['key', 'ttlMs'] <> '{}' then
      perform refuse('invalid_argument', path || 'idempotencyKey must be an object with key and, if wanted, ttlMs',
        jsonb_build_object('field', path || 'idempotencyKey'));
    end if;
    perform check_name(k, path || 'idempotencyKey.', 'key', 512);
    perform check_integer(k, path || 'idempotencyKey.', 'ttlMs', 1, 31536000000);
  end if;
  if e ? 'synthetic' and jsonb_typeof(e->'synthetic') <> 'boolean' then
    perform refuse('invalid_argument', path || 'synthetic must be true or false', jsonb_build_object('field', path || 'synthetic'));
  end if;
  if e ? 'after' then
    k := e->'after';
    if jsonb_typeof(k) <> 'object' or k - array['jobId', 'on'] <> '{}' or not coalesce(k->>'on' in ('succeeded', 'failed'), false)
       or not coalesce(k->>'jobId' ~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$', false) then
      perform refuse('invalid_argument', path || 'after must be an object with jobId and on: succeeded or failed',
        jsonb_build_object('field', path || 'after'));
    end if;
  end if;
  if e ? 'runId' and not coalesce(e->>'runId' ~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$', false) then
    perform refuse('invalid_argument', path || 'runId must be a UUID', jsonb_build_object('field', path || 'runId'));
  end if;
  if e ? 'id' and not coalesce(e->>'id' ~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$', false) then
    perform refuse('invalid_argument', path || 'id must be a UUID', jsonb_build_object('field', path || 'id'));
  end if;
  if e ? 'payload' then
    perform check_value(e->'payload', path || 'payload', max_bytes);
  end if;
end $$;

-- What the caller sent, in the one form in which two enqueues are compared (the payload apart).
create or replace function sent_definition(e jsonb) returns jsonb
language sql stable set search_path from current as $$
  select jsonb_strip_nulls(jsonb_build_object(
    'queue', coalesce(e->>'queue', 'default'),
    'type', e->>'type',
    'version', coalesce(e->>'version', '1'),
    'priority', coalesce((e->>'priority')::numeric, 0),
    'runAt', to_time(e->'runAt'),
    'delayMs', e->'delayMs',
    'deadline', to_time(e->'deadline'),
    'deadlineMs', e->'deadlineMs',
    'maxAttempts', coalesce((e->>'maxAttempts')::numeric, 25),
    'retryPolicy', case when e ? 'retryPolicy' then normalize_policy(e->'retryPolicy') end,
    'tags', (select jsonb_agg(t order by t collate "C") from jsonb_array_elements_text(case when jsonb_typeof(e->'tags') = 'array' then e->'tags' else '[]' end) t),
    'timeoutMs', e->'timeoutMs',
    'endpoint', e->>'endpoint',
    'after', e->'after',
    'synthetic', coalesce((e->>'synthetic')::boolean, false)))
$$;

-- Takes the key of one job, or finds the job that has it. Returns the earlier job's id, null when the key is ours.
-- A concurrent holder is waited for: its commit makes us the loser, its rollback the winner.
create or replace function take_key(e jsonb, path text, at timestamptz, batch jsonb) returns uuid
language plpgsql set search_path from current as $$
declare
  wanted text := e->'idempotencyKey'->>'key';
  ttl bigint := coalesce((e->'idempotencyKey'->>'ttlMs')::numeric, 86400000)::bigint;
  -- The hash is for the time when retention has removed the job and the key still stands.
  mine jsonb := sent_definition(e) || jsonb_build_object('payloadHash', jsonb_hash_extended(e->'payload', 0));
  theirs idempotency;
  fields jsonb;
  other_payload jsonb;
  known boolean;
begin
  loop
    -- A plain look first: the insert below would lock the holder's row for the rest of this transaction.
    select * into theirs from idempotency k where k.key = wanted;
    exit when found and theirs.expires_at > at;
    insert into idempotency as k (key, job_id, expires_at, definition)
    values (wanted, (e->>'id')::uuid, at + ms(ttl), mine)
    on conflict (key) do update set job_id = excluded.job_id, expires_at = excluded.expires_at, definition = excluded.definition
      where k.expires_at <= at;
    if found then
      return null;
    end if;
  end loop;
  if theirs.job_id = (e->>'id')::uuid then
    return theirs.job_id;
  end if;
  select coalesce(jsonb_agg(f order by f), '[]') into fields from (
    select key as f from jsonb_each(mine) m
      full join jsonb_each(theirs.definition) t using (key)
      where m.value is distinct from t.value and key <> 'payloadHash') d;
  -- The holder may stand earlier in the same batch.
  select j.payload::jsonb into other_payload from job j where j.id = theirs.job_id;
  known := found;
  if not known then
    select x.e->'payload' into other_payload from jsonb_array_elements(batch) x (e) where x.e->>'id' = theirs.job_id::text;
    known := found;
  end if;
  if (known and other_payload is distinct from e->'payload')
     or (not known and theirs.definition->'payloadHash' is distinct from mine->'payloadHash') then
    fields := fields || '["payload"]';
  end if;
  if fields <> '[]' then
    perform refuse('idempotency_conflict',
      format('%sidempotencyKey names job %s, which was enqueued with another %s', path, theirs.job_id,
        (select string_agg(f, ', ') from jsonb_array_elements_text(fields) f)),
      jsonb_build_object('field', path || 'idempotencyKey', 'conflictingFields', fields, 'existingId', theirs.job_id));
  end if;
  return theirs.job_id;
end $$;

-- Tells workers that sleep on these queues and types; each is told at most once a statement.
create or replace function wake_sleepers(p_queues text[], p_types text[]) returns void
language plpgsql set search_path from current as $$
begin
  perform pg_notify(s.channel, 'w') from sleeper s
  where s.until > clock_now() and s.queues && p_queues and s.types && p_types;
end $$;

-- What a batch refers to must be there: predecessors among the jobs or in the batch, runs that are open.
create or replace function check_links(jobs jsonb, ids uuid[], single boolean) returns void
language plpgsql set search_path from current as $$
declare
  given record;
  held run;
  path text;
begin
  for given in
    select x.n, (x.e->'after'->>'jobId')::uuid as after_id, (x.e->>'runId')::uuid as run_id, (x.e->>'id')::uuid as id
    from jsonb_array_elements(jobs) with ordinality x (e, n) where x.e ?| array['after', 'runId'] order by x.n
  loop
    path := case when single then '' else format('jobs[%s].', given.n - 1) end;
    if given.after_id is not null and (given.after_id = given.id
        or given.after_id <> all (ids[1:given.n::int - 1]) and not exists (select from job j where j.id = given.after_id)) then
      perform refuse('not_found', format('%safter.jobId: there is no job %s before this one', path, given.after_id), jsonb_build_object('field', path || 'after.jobId'));
    end if;
    if given.run_id is not null and not exists (select from job j where j.id = given.id) then
      select * into held from run r where r.id = given.run_id for key share;
      if not found then
        perform refuse('not_found', format('there is no run %s', given.run_id), jsonb_build_object('field', path || 'runId'));
      elsif held.finished_at is not null then
        perform refuse('wrong_state', format('run %s is finished: it takes no new jobs', given.run_id), jsonb_build_object('field', path || 'runId'));
      end if;
    end if;
  end loop;
end $$;

-- jobs: one object or an array of `{"id"?, "type", "payload"?, options…}`; or `{"jobs": …, "contracts": n}` from a
-- client that validated payloads against version n of the published contracts.
-- Returns `[{"id", "replayed"}]` in the order given, or `{"contractStale": n}` and nothing is written.
create or replace function enqueue(jobs jsonb) returns text
language plpgsql security definer set search_path from current
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  at timestamptz := clock_now();
  max_bytes int;
  validated_against int;
  contracts_version int;
  has_contracts boolean;
  single boolean;
  total int;
  unusual boolean;
  lacks_id boolean;
  with_keys boolean;
  linked boolean;
  fault record;
  ids uuid[];
  given record;
  earlier uuid;
  answered jsonb := '{}';
  wake_queues text[];
  wake_types text[];
begin
  if jsonb_typeof(jobs) = 'object' and jobs ? 'jobs' then
    -- Every client sends this form: refusals alone pay for the functions that name the field.
    if jobs - 'jobs' - 'contracts' <> '{}' or not is_integer(jobs->'contracts', 0, 2147483647) then
      perform check_keys(jobs, array['jobs', 'contracts'], '');
      perform check_integer(jobs, '', 'contracts', 0, 2147483647);
    end if;
    validated_against := (jobs->'contracts')::numeric;
    jobs := jobs->'jobs';
  end if;
  single := jsonb_typeof(jobs) = 'object';
  if single then
    jobs := jsonb_build_array(jobs);
  elsif jsonb_typeof(jobs) is distinct from 'array' then
    perform refuse('invalid_argument', 'jobs must be a JSON object or an array of them', '{"field":"jobs"}');
  end if;
  total := jsonb_array_length(jobs);
  if total = 0 then
    return '[]';
  end if;
  if total > 10000 then
    perform refuse('invalid_argument', 'jobs must be at most 10000 in one statement', '{"field":"jobs","limit":10000}');
  end if;
  select s.max_payload_bytes, s.contracts_version into max_bytes, contracts_version from settings s;
  has_contracts := contracts_version > 0;
  if validated_against <> contracts_version then
    -- An answer and no error, which would end the caller's transaction.
    return jsonb_build_object('contractStale', contracts_version)::text;
  end if;

  for fault in
    select x.e, x.n from jsonb_array_elements(jobs) with ordinality x (e, n)
    where (case when jsonb_typeof(x.e) <> 'object' then false
      else x.e - array['id', 'type', 'payload', 'queue', 'version', 'maxAttempts', 'priority', 'delayMs'] = '{}'
        and is_name(x.e->'type', 200)
        and (not x.e ? 'id' or (jsonb_typeof(x.e->'id') = 'string' and octet_length(x.e->>'id') = 36))
        and (not x.e ? 'queue' or is_name(x.e->'queue', 200))
        and (not x.e ? 'version' or is_name(x.e->'version', 200))
        and (not x.e ? 'maxAttempts' or is_integer(x.e->'maxAttempts', 1, 100))
        and (not x.e ? 'priority' or is_integer(x.e->'priority', -100, 100))
        and (not x.e ? 'delayMs' or is_integer(x.e->'delayMs', 0, 3153600000000))
        and (not x.e ? 'payload' or octet_length((x.e->'payload')::text) <= max_bytes)
        and (pg_column_size(x.e) <= 800 or not nested_too_deep(coalesce(x.e->'payload', 'null')))
      end) is not true
    order by x.n
  loop
    perform check_job(fault.e, case when single then '' else format('jobs[%s].', fault.n - 1) end, max_bytes);
  end loop;

  select bool_or(not x.e ? 'id'), bool_or(x.e ? 'idempotencyKey'), bool_or(x.e ?| array['after', 'runId']) into lacks_id, with_keys, linked from jsonb_array_elements(jobs) x (e);
  if lacks_id then
    select jsonb_agg(case when x.e ? 'id' then x.e else x.e || jsonb_build_object('id', uuid7()) end order by x.n)
    into jobs from jsonb_array_elements(jobs) with ordinality x (e, n);
  end if;
  begin
    select array_agg((x.e->>'id')::uuid order by x.n) into ids from jsonb_array_elements(jobs) with ordinality x (e, n);
  exception when invalid_text_representation then
    perform check_job(x.e, case when single then '' else format('jobs[%s].', x.n - 1) end, max_bytes)
    from jsonb_array_elements(jobs) with ordinality x (e, n) order by x.n;
  end;
  -- Ids made one after the other rise, and need no sorting to be told apart.
  if exists (select from generate_series(2, total) i where ids[i] <= ids[i - 1])
     and (select count(distinct u) from unnest(ids) u) < total then
    perform refuse('invalid_argument', 'two jobs have the same id', '{"field":"id"}');
  end if;

  if linked then
    perform check_links(jobs, ids, single);
  end if;

  -- Ids that are there already: a call that is sent again after a lost reply.
  if exists (select from job j where j.id = any (ids)) then
    for given in
      select x.e, x.n, j.payload, l.type from jsonb_array_elements(jobs) with ordinality x (e, n)
      join job j on j.id = (x.e->>'id')::uuid
      cross join lateral (select l.type from lane l where l.id = j.lane_id limit 1) l
    loop
      if given.type <> given.e->>'type' or given.payload::jsonb is distinct from given.e->'payload' then
        perform refuse('invalid_argument', format('id %s already names another job', given.e->>'id'),
          jsonb_build_object('field', case when single then 'id' else format('jobs[%s].id', given.n - 1) end));
      end if;
      answered := answered || jsonb_build_object(given.n::text, given.e->>'id');
    end loop;
  end if;
  if with_keys then
    -- In the order of the keys, so that two batches never wait for each other crosswise.
    for given in
      select x.e, x.n from jsonb_array_elements(jobs) with ordinality x (e, n)
      where x.e ? 'idempotencyKey' and not answered ? x.n::text
      order by (x.e->'idempotencyKey'->>'key') collate "C", x.n
    loop
      earlier := take_key(given.e, case when single then '' else format('jobs[%s].', given.n - 1) end, at, jobs);
      if earlier is not null then
        answered := answered || jsonb_build_object(given.n::text, earlier);
      end if;
    end loop;
  end if;

  perform commit_synchronously();
  with item as materialized (
    select
      (x.e->>'id')::uuid as id, x.e, g.type, g.queue, g.synthetic,
      coalesce(known.id, intern_lane(g.queue, g.type, g.version, g.endpoint, g.priority, g.synthetic)) as lane_id,
      case
        when x.e ? 'delayMs' then at + ms((x.e->>'delayMs')::numeric::bigint)
        when x.e ? 'runAt' then to_time(x.e->'runAt')
      end as run_at,
      case
        when x.e ? 'deadlineMs' then at + ms((x.e->>'deadlineMs')::numeric::bigint)
        when x.e ? 'deadline' then to_time(x.e->'deadline')
      end as deadline,
      coalesce((x.e->>'timeoutMs')::numeric::bigint, c.timeout_ms) as timeout_ms,
      (x.e->'after'->>'jobId')::uuid as after_id,
      -- Resolved once: the call's own, else the contract's, else the endpoint's.
      case
        when x.e ? 'retryPolicy' then normalize_policy(x.e->'retryPolicy')
        when c.retry_policy is not null then c.retry_policy
        when g.endpoint is not null then (select e.policy from gate e where e.kind = 'e' and e.name = g.endpoint)
      end as policy,
      c.max_attempts as contract_attempts,
      c.type is not null as contracted
    from jsonb_array_elements(jobs) with ordinality x (e, n)
    left join contract c on has_contracts and c.type = x.e->>'type' and c.version = coalesce(x.e->>'version', '1')
    cross join lateral (
      select coalesce(x.e->>'queue', 'default') as queue, x.e->>'type' as type, coalesce(x.e->>'version', '1') as version,
        coalesce(x.e->>'endpoint', c.endpoint) as endpoint, coalesce((x.e->>'priority')::numeric, 0)::int2 as priority,
        coalesce((x.e->>'synthetic')::boolean, false) as synthetic) g
    left join lateral (
      select l.id from lane l
      where l.id = lane_hash(g.queue, g.type, g.version, g.endpoint, g.priority, g.synthetic, 0)
        and l.queue = g.queue and l.type = g.type and l.version = g.version and l.endpoint is not distinct from g.endpoint
        and l.priority = g.priority and l.synthetic = g.synthetic
      limit 1) known on true
    where answered = '{}' or not answered ? x.n::text
    order by x.n
  ),
  defined as (
    insert into job (id, lane_id, enqueued_at, max_attempts, payload, policy, synthetic, contracted, tags, run_at, deadline, timeout_ms, effect_key,
      after_id, after_on, run_id)
    -- The count is resolved apart from the policy. A synthetic test is one attempt whatever they say.
    select i.id, i.lane_id, at,
      case when i.synthetic then 1 else coalesce((i.e->>'maxAttempts')::numeric, i.contract_attempts, (i.policy->>'maxAttempts')::numeric, 25) end::int2,
      (i.e->'payload')::text, i.policy, i.synthetic, i.contracted,
      case when i.e ? 'tags' then array(select jsonb_array_elements_text(i.e->'tags')) end,
      i.run_at, i.deadline, i.timeout_ms, i.e->'idempotencyKey'->>'key',
      i.after_id, left(i.e->'after'->>'on', 1)::"char", (i.e->>'runId')::uuid
    from item i
  ),
  started as (
    insert into runtime (job_id, lane_id, seq, state, wake_at, timeout_ms, deadline, after_id)
    select i.id, i.lane_id, nextval('position'),
      case when i.after_id is not null then 'b' when i.run_at > at then 's' else 'r' end,
      case when i.after_id is null and i.run_at > at then i.run_at end,
      i.timeout_ms, i.deadline, i.after_id
    from item i
  )
  select array_agg(distinct i.queue), array_agg(distinct i.type) into wake_queues, wake_types
  from item i where i.after_id is null and (i.run_at is null or i.run_at <= at);

  if linked then
    -- A predecessor that has ended decides at once.
    perform resolve_followers(o.job_id, o.state, at)
    from (select distinct (x.e->'after'->>'jobId')::uuid as id from jsonb_array_elements(jobs) x (e) where x.e ? 'after') p
    join outcome o on o.job_id = p.id;
  end if;
  if wake_queues is not null and exists (select from sleeper) then
    perform wake_sleepers(wake_queues, wake_types);
  end if;

  return (
    select '[' || string_agg(
      case when answered ? u.n::text
        then format('{"id":"%s","replayed":true}', answered->>(u.n::text))
        else format('{"id":"%s","replayed":false}', u.id)
      end, ',' order by u.n) || ']'
    from unnest(ids) with ordinality u (id, n));
end $$;
