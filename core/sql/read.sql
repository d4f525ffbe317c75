-- Reading: snapshot, timeline, lists, counts. Nothing here changes anything.

create or replace function live_state(code "char") returns text language sql immutable parallel safe as $$
  select case code when 'b' then 'blocked' when 's' then 'scheduled' when 'r' then 'ready' when 'a' then 'active' end
$$;

create or replace function lane_row(p_id bigint) returns lane language sql stable set search_path from current as $$
  select * from lane l where l.id = p_id limit 1
$$;

create or replace function snapshot(p_id uuid, with_payload boolean default true) returns jsonb
language plpgsql stable security definer set search_path from current set jit = off as $$
declare
  at timestamptz := clock_now();
  j job;
  l lane;
  r runtime;
  o outcome;
  last attempt;
  last_error jsonb;
begin
  select * into j from job where id = p_id;
  if not found then
    return null;
  end if;
  l := lane_row(j.lane_id);
  select * into r from runtime where job_id = p_id;
  select * into o from outcome where job_id = p_id;
  select * into last from attempt a where a.job_id = p_id order by a.attempt desc limit 1;
  if last.job_id is not null then
    select t.error into last_error from error_text t where t.job_id = p_id and t.attempt = last.attempt;
    last_error := coalesce(last_error, jsonb_build_object('name', last.error_name, 'message', last.error_message))
      || jsonb_build_object('attempt', last.attempt, 'cause', last.cause, 'at', iso(last.ended_at));
  end if;
  return jsonb_build_object(
      'id', j.id, 'queue', l.queue, 'type', l.type, 'version', l.version, 'priority', l.priority, 'endpoint', l.endpoint,
      'state', coalesce(outcome_state(o.state), live_state(r.state)),
      'attempt', coalesce(o.attempt, r.attempt),
      'maxAttempts', j.max_attempts,
      'retryPolicy', j.policy,
      'tags', coalesce(to_jsonb(j.tags), '[]'),
      'hasPayload', j.payload is not null,
      'idempotencyKey', coalesce(j.effect_key, j.id::text),
      'enqueuedAt', iso(j.enqueued_at), 'runAt', iso(j.run_at), 'deadline', iso(j.deadline), 'timeoutMs', j.timeout_ms,
      'nextRunAt', case r.state when 's' then iso(r.wake_at) end,
      'claimedAt', iso(coalesce(o.claimed_at, r.claimed_at)),
      'leaseUntil', case r.state when 'a' then iso(coalesce(r.lease_until, r.wake_at)) end,
      'worker', (select w.name from worker w where w.id = coalesce(o.worker_id, r.worker_id)),
      'cancelRequested', r.cancel is not null,
      'finishedAt', iso(o.finished_at),
      'reason', o.reason,
      'detail', o.detail,
      'uncertain', coalesce(o.uncertain, r.uncertain),
      'synthetic', j.synthetic,
      'sourceId', j.source_id,
      'redrivenTo', coalesce((select jsonb_agg(x.id order by x.id) from job x where x.source_id = j.id), '[]'),
      'runId', j.run_id,
      'afterId', j.after_id,
      'lastError', last_error,
      'progress', r.progress::jsonb,
      'waiting', case when r.job_id is null then '[]' else waiting(r, l, at) end)
    || case when with_payload and j.payload is not null then jsonb_build_object('payload', j.payload::jsonb) else '{}' end
    || case when with_payload and o.state = 's' then jsonb_build_object('result', coalesce(o.result::jsonb, 'null')) else '{}' end;
end $$;

create or replace function rpc_get(args jsonb) returns text
language sql stable security definer set search_path from current as $$
  select coalesce(snapshot(arg_uuid(args, 'id'))::text, 'null')
$$;

-- The end of a job for somebody who waits for it; null while it has not ended.
create or replace function rpc_outcome(args jsonb) returns text
language plpgsql stable security definer set search_path from current as $$
declare
  wanted uuid := arg_uuid(args, 'id');
  o outcome;
  s jsonb;
begin
  select * into o from outcome where job_id = wanted;
  if not found then
    perform from job where id = wanted;
    if not found then
      perform refuse('not_found', format('there is no job %s', wanted), '{"field":"id"}');
    end if;
    return 'null';
  end if;
  s := snapshot(wanted);
  return (jsonb_build_object('id', wanted, 'state', s->'state', 'attempt', s->'attempt', 'reason', s->'reason',
      'uncertain', s->'uncertain', 'finishedAt', s->'finishedAt', 'started', o.attempt > 0 or o.uncertain, 'error', case when o.state = 'f' then s->'lastError' end)
    || case when s ? 'result' then jsonb_build_object('result', s->'result') else '{}' end)::text;
end $$;

-- Everything that happened to a job, in order. The happy path has no rows of its own: it is read off the definition
-- and the outcome.
create or replace function timeline(p_id uuid)
returns table (at timestamptz, kind text, attempt int, data jsonb)
language sql stable security definer set search_path from current set jit = off as $$
  with entry (at, place, kind, attempt, data) as (
    select j.enqueued_at, 0, 'enqueued', null::int, jsonb_strip_nulls(jsonb_build_object('runAt', iso(j.run_at), 'sourceId', j.source_id, 'runId', j.run_id))
    from job j where j.id = p_id
    union all
    select x.ready_at, 1, 'promoted', x.number, '{}'::jsonb
    from (select a.ready_at, a.attempt::int as number from attempt a where a.job_id = p_id
      union all select o.ready_at, o.attempt from outcome o where o.job_id = p_id and o.state = 's'
      -- It was ready for an attempt that never counted.
      union all select o.ready_at, o.attempt + 1 from outcome o where o.job_id = p_id and o.state <> 's'
        and not exists (select from attempt a where a.job_id = p_id and a.attempt = o.attempt and a.claim_id = o.claim_id)
      union all select r.ready_at, r.attempt + case when r.state = 'a' then 0 else 1 end from runtime r where r.job_id = p_id and r.state in ('r', 'a')) x
    where x.ready_at is not null
    union all
    select x.claimed_at, 2, 'claimed', x.number, jsonb_strip_nulls(jsonb_build_object('fence', fence_text(x.claim_id, x.claim_no), 'workerId', x.worker_id,
      'worker', (select w.name from worker w where w.id = x.worker_id)))
    from (select a.claimed_at, a.attempt::int as number, a.claim_id, a.claim_no, a.worker_id from attempt a where a.job_id = p_id
      union all select o.claimed_at, o.attempt, o.claim_id, o.claim_no, o.worker_id from outcome o where o.job_id = p_id and o.state = 's'
      union all select r.claimed_at, r.attempt, r.claim_id, r.claim_no, r.worker_id from runtime r where r.job_id = p_id and r.state = 'a') x
    where x.claimed_at is not null
    union all
    -- A released claim is told by its event alone.
    select (e.data->>'claimedAt')::timestamptz, 2, 'claimed', e.attempt::int, jsonb_build_object('fence', e.data->'fence', 'workerId', e.data->'workerId')
    from event e where e.job_id = p_id and e.kind = 'released'
    union all
    select c.saved_at, 3, 'checkpointed', c.attempt::int, jsonb_build_object('name', c.name) from checkpoint c where c.job_id = p_id and c.attempt > 0
    union all
    select e.at, 4, e.kind, e.attempt::int, coalesce(e.data, '{}') from event e where e.job_id = p_id
    union all
    -- An attempt that ended without success: its cause, and the delay it selected if there is a next one.
    select a.ended_at, 5,
      case a.cause when 'lease' then 'lease_expired' when 'timeout' then 'timed_out' when 'deadline' then 'deadline_exceeded' else 'retry_scheduled' end,
      a.attempt::int,
      jsonb_strip_nulls(jsonb_build_object('cause', a.cause, 'fence', fence_text(a.claim_id, a.claim_no),
        'nextAttempt', case when a.delay_ms is not null then a.attempt + 1 end, 'delayMs', a.delay_ms, 'source', a.source, 'runAt', iso(a.run_at),
        'error', jsonb_build_object('name', a.error_name, 'message', a.error_message), 'uncertain', nullif(a.uncertain, false)))
      || coalesce(a.detail, '{}')
    from attempt a where a.job_id = p_id and (a.delay_ms is not null or a.cause in ('lease', 'timeout', 'deadline'))
    union all
    select o.finished_at, 6, 'deadline_exceeded', null, '{}' from outcome o
    where o.job_id = p_id and o.reason = 'deadline'
      and not exists (select from attempt a where a.job_id = p_id and a.attempt = o.attempt and a.cause = 'deadline')
    union all
    select o.finished_at, 7, outcome_state(o.state), nullif(o.attempt, 0)::int,
      jsonb_strip_nulls(jsonb_build_object('reason', o.reason, 'uncertain', nullif(o.uncertain, false),
        'error', (select jsonb_build_object('name', a.error_name, 'message', a.error_message) from attempt a
          where o.state = 'f' and a.job_id = p_id and a.attempt = o.attempt),
        'started', case when o.state = 'c' then o.attempt > 0 or o.uncertain end)) || coalesce(o.detail - 'at', '{}')
    from outcome o where o.job_id = p_id
  )
  -- What happened in one moment: an attempt's end before the next one's beginning, the job's end last.
  select e.at, e.kind, e.attempt, e.data from entry e order by e.at, e.place >= 6, e.attempt nulls first, e.place
$$;

create or replace function rpc_timeline(args jsonb) returns text
language plpgsql stable security definer set search_path from current as $$
declare
  wanted uuid := arg_uuid(args, 'id');
begin
  perform from job j where j.id = wanted;
  if not found then
    perform refuse('not_found', format('there is no job %s', wanted), '{"field":"id"}');
  end if;
  return (select jsonb_agg(jsonb_build_object('kind', t.kind, 'at', iso(t.at))
      || case when t.attempt is not null then jsonb_build_object('attempt', t.attempt) else '{}' end || t.data order by t.n)
    from timeline(wanted) with ordinality t (at, kind, attempt, data, n))::text;
end $$;

create or replace function check_filter(filter jsonb) returns void
language plpgsql immutable set search_path from current as $$
declare
  unknown text;
begin
  if jsonb_typeof(filter) <> 'object' then
    perform refuse('invalid_argument', 'filter must be an object', '{"field":"filter"}');
  end if;
  select key into unknown from jsonb_object_keys(filter) key
  where key <> all (array['queue', 'type', 'version', 'endpoint', 'state', 'tag', 'uncertain']) order by key collate "C" limit 1;
  if found then
    perform refuse('invalid_argument', 'unknown filter: ' || left(unknown, 100), jsonb_build_object('field', 'filter.' || left(unknown, 100)));
  end if;
  if filter ? 'state' and filter->>'state' <> all (array['blocked', 'scheduled', 'ready', 'active', 'succeeded', 'failed', 'canceled', 'skipped']) then
    perform refuse('invalid_argument', 'filter.state must be blocked, scheduled, ready, active, succeeded, failed, canceled or skipped',
      '{"field":"filter.state"}');
  end if;
  perform check_name(filter, 'filter.', 'queue', 200), check_name(filter, 'filter.', 'type', 200), check_name(filter, 'filter.', 'version', 200),
    check_name(filter, 'filter.', 'endpoint', 200), check_name(filter, 'filter.', 'tag', 400), arg_boolean(filter, 'uncertain');
end $$;

-- All of a filter but the state.
create or replace function matches_filter(p_job uuid, p_lane bigint, p_uncertain boolean, filter jsonb) returns boolean
language sql stable set search_path from current as $$
  select (not filter ?| array['queue', 'type', 'version', 'endpoint'] or exists (
      select from lane l where l.id = p_lane
        and (not filter ? 'queue' or l.queue = filter->>'queue')
        and (not filter ? 'type' or l.type = filter->>'type')
        and (not filter ? 'version' or l.version = filter->>'version')
        and (not filter ? 'endpoint' or l.endpoint = filter->>'endpoint')))
    and (not filter ? 'uncertain' or p_uncertain = (filter->>'uncertain')::boolean)
    and (not filter ? 'tag' or exists (select from job j where j.id = p_job and filter->>'tag' = any (j.tags)))
$$;

-- Newest first, by keyset: `page.after` is the last id of the page before. Payloads only if asked for.
create or replace function rpc_list(args jsonb) returns text
language plpgsql stable security definer set search_path from current set enable_seqscan = off set enable_sort = off set jit = off as $$
declare
  filter jsonb := coalesce(args->'filter', '{}');
  page jsonb := coalesce(args->'page', '{}');
  wanted text;
  size int;
  before uuid;
  ids uuid[];
begin
  perform check_filter(filter);
  size := arg_integer(page, 'limit', 1, 1000, 50);
  before := case when page ? 'after' and page->'after' <> 'null' then arg_uuid(page, 'after') else 'ffffffff-ffff-ffff-ffff-ffffffffffff' end;
  wanted := filter->>'state';
  -- One row more than the page tells whether there is another.
  if wanted in ('failed', 'canceled', 'skipped') then
    ids := array(select o.job_id from outcome o where o.state <> 's' and o.job_id < before and outcome_state(o.state) = wanted
      and matches_filter(o.job_id, o.lane_id, o.uncertain, filter) order by o.job_id desc limit size + 1);
  elsif wanted = 'succeeded' then
    ids := array(select o.job_id from outcome o where o.job_id < before and o.state = 's'
      and matches_filter(o.job_id, o.lane_id, o.uncertain, filter) order by o.job_id desc limit size + 1);
  elsif wanted is not null then
    ids := array(select r.job_id from runtime r where r.job_id < before and live_state(r.state) = wanted
      and matches_filter(r.job_id, r.lane_id, r.uncertain, filter) order by r.job_id desc limit size + 1);
  else
    ids := array(select j.id from job j
      where j.id < before and matches_filter(j.id, j.lane_id,
        case when filter ? 'uncertain' then coalesce((select o.uncertain from outcome o where o.job_id = j.id), (select r.uncertain from runtime r where r.job_id = j.id)) end,
        filter) order by j.id desc limit size + 1);
  end if;
  return jsonb_build_object(
    'jobs', coalesce((select jsonb_agg(snapshot(u.id, arg_boolean(args, 'payload')) order by u.n) from unnest(ids[1:size]) with ordinality u (id, n)), '[]'),
    'next', case when cardinality(ids) > size then ids[size] end)::text;
end $$;

-- How many jobs are in each state; with `"by": "queue"` the same per queue that has jobs.
-- Jobs by lane and state: a queue has many jobs in a few lanes, so its name is looked up once per lane.
create or replace function lane_counts(filter jsonb) returns table (lane_id bigint, state text, n bigint)
language sql stable set search_path from current as $$
  select c.lane_id, c.state, c.n from (
    select r.lane_id, live_state(r.state) as state, count(*) as n from runtime r
    where filter - 'state' = '{}' or matches_filter(r.job_id, r.lane_id, r.uncertain, filter) group by 1, 2
    union all
    select o.lane_id, outcome_state(o.state), count(*) from outcome o
    where filter - 'state' = '{}' or matches_filter(o.job_id, o.lane_id, o.uncertain, filter) group by 1, 2) c
  where not filter ? 'state' or c.state = filter->>'state'
$$;

create or replace function rpc_counts(args jsonb) returns text
language plpgsql stable security definer set search_path from current set jit = off as $$
declare
  none constant jsonb := '{"blocked":0,"scheduled":0,"ready":0,"active":0,"succeeded":0,"failed":0,"canceled":0,"skipped":0}';
  filter jsonb := coalesce(args->'filter', '{}');
begin
  perform check_filter(filter);
  if args ? 'by' and args->'by' <> '"queue"' then
    perform refuse('invalid_argument', 'by must be queue', '{"field":"by"}');
  end if;
  if args ? 'by' then
    return (select coalesce(jsonb_agg(none || q.counted || jsonb_build_object('queue', q.queue) order by q.queue), '[]') from (
      select s.queue, jsonb_object_agg(s.state, s.n) as counted from (
        select (lane_row(c.lane_id)).queue, c.state, sum(c.n) as n from lane_counts(filter) c group by 1, 2) s
      group by s.queue) q)::text;
  end if;
  return (select none || coalesce(jsonb_object_agg(s.state, s.n), '{}')
    from (select c.state, sum(c.n) as n from lane_counts(filter) c group by c.state) s)::text;
end $$;

-- The delays SQL will choose for a policy: for planning, and for the comparison of the SDKs.
create or replace function preview_policy(policy jsonb, job uuid, attempts int) returns bigint[]
language sql stable security definer set search_path from current as $$
  select array_agg(policy_delay(normalize_policy(preview_policy.policy), job, n) order by n) from generate_series(1, attempts) n
$$;

create or replace function rpc_preview_policy(args jsonb) returns text
language plpgsql stable security definer set search_path from current as $$
begin
  if not args ? 'policy' then
    perform refuse('invalid_argument', 'policy is missing', '{"field":"policy"}');
  end if;
  return jsonb_build_object('policy', normalize_policy(args->'policy', 'policy'),
    'delaysMs', preview_policy(args->'policy', case when args ? 'jobId' then arg_uuid(args, 'jobId') else uuid7() end,
      arg_integer(args, 'attempts', 1, 100, 10)::int))::text;
end $$;
