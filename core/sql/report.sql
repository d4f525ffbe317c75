-- Reports: how an attempt ends. Success has a road of its own, in batches; every other ending, whoever reports it,
-- goes through `end_attempt`, where the budget and the delay are decided.
-- Only an active row has a claim, so a claim's three parts find it by the primary key alone. Naming the state as well
-- would let the planner walk the partial index of all active rows instead.

create or replace function outcome_state(code "char") returns text language sql immutable parallel safe as $$
  select case code when 's' then 'succeeded' when 'f' then 'failed' when 'c' then 'canceled' when 'k' then 'skipped' end
$$;

-- Completes jobs under their fences. Returns an empty array when all were accepted, else per job:
-- 0 accepted, 1 settled before by this same report, 2 lease lost, 3 result too large (the attempt ended as an output failure).
create or replace function complete(p_jobs uuid[], p_claims uuid[], p_numbers int2[], p_results text[]) returns int2[]
language plpgsql security definer set search_path from current
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off
as $$
declare
  at timestamptz := clock_now();
  max_bytes int;
  too_large int2[];
  settled int;
  held runtime;
  i int;
  -- Successes matter to a circuit only while some circuit is not closed or has failures to forget.
  watched boolean := exists (select from circuit c where c.state <> 'c' or c.failures > 0);
  linked boolean := exists (select from runtime w where w.state = 'b');
  ended_rows runtime[];
  effects jsonb := '[]';
begin
  perform commit_synchronously();
  select s.max_payload_bytes into max_bytes from settings s;
  select array_agg(x.place::int2) into too_large from unnest(p_results) with ordinality x (result, place)
  where octet_length(x.result) > max_bytes;
  if too_large is not null then
    foreach i in array too_large loop
      select * into held from runtime w where w.job_id = p_jobs[i] and w.claim_id = p_claims[i] and w.claim_no = p_numbers[i]
      for update;
      if found then
        effects := effects || coalesce((end_attempt(held, at, 'output', jsonb_build_object('claim', held.claim_id, 'error', jsonb_build_object(
          'name', 'PayloadTooLarge', 'message', format('the result is %s bytes of JSON; the limit is %s', octet_length(p_results[i]), max_bytes))))).effect, '[]');
      end if;
    end loop;
  end if;

  with given as materialized (
    select g.job_id, g.claim_id, g.claim_no, g.result
    from unnest(p_jobs, p_claims, p_numbers, p_results) with ordinality g (job_id, claim_id, claim_no, result, place)
    where too_large is null or g.place <> all (too_large)
    order by g.job_id
  ),
  ended as (
    delete from runtime r using given g
    where r.job_id = g.job_id and r.claim_id = g.claim_id and r.claim_no = g.claim_no
    returning r as row, g.result
  ),
  recorded as (
    insert into outcome (job_id, lane_id, state, attempt, claim_id, claim_no, worker_id, claimed_at, ready_at, finished_at, result)
    select (e.row).job_id, (e.row).lane_id, 's', (e.row).attempt, (e.row).claim_id, (e.row).claim_no, (e.row).worker_id, (e.row).claimed_at,
      (e.row).ready_at, at, nullif(e.result::jsonb::text, 'null')
    from ended e
  )
  select count(*), array_agg(e.row) filter (where watched or linked) into settled, ended_rows from ended e;
  if linked and settled > 0 then
    perform resolve_followers(x.job_id, 's', at) from unnest(ended_rows) x order by x.job_id;
  end if;
  if watched and settled > 0 then
    select effects || coalesce(jsonb_agg(circuit_effect(x, 'success', at, true)), '[]') into effects from unnest(ended_rows) x;
  end if;
  if effects <> '[]' then
    perform apply_effects(effects, at);
  end if;
  if settled = cardinality(p_jobs) then
    return '{}';
  end if;
  return (
    select array_agg((case
      -- Ended by its result, now or by this report before; any other claim of the job is not this one's to end.
      when g.place::int2 = any (too_large) then case when exists (
          select from attempt a where a.job_id = g.job_id and a.claim_id = g.claim_id and a.claim_no = g.claim_no
            and a.reported and a.cause in ('output', 'cancel')) then 3 else 2 end
      when o.finished_at = at then 0
      when o.state = 's' then 1
      else 2 end)::int2 order by g.place)
    from unnest(p_jobs, p_claims, p_numbers) with ordinality g (job_id, claim_id, claim_no, place)
    left join outcome o on o.job_id = g.job_id and o.claim_id = g.claim_id and o.claim_no = g.claim_no);
end $$;

-- Writes the end of a job that did not succeed, and lets its live row go.
create or replace function end_job(r runtime, at timestamptz, state "char", reason text, uncertain boolean, detail jsonb default null)
returns void language plpgsql set search_path from current as $$
begin
  perform commit_synchronously();
  delete from runtime w where w.job_id = r.job_id;
  insert into outcome (job_id, lane_id, state, attempt, claim_id, claim_no, worker_id, claimed_at, ready_at, finished_at, uncertain, reason, detail)
  values (r.job_id, r.lane_id, state, r.attempt, r.claim_id, r.claim_no, r.worker_id, r.claimed_at, r.ready_at, at, uncertain, reason, detail);
  if exists (select from runtime w where w.after_id = r.job_id and w.state = 'b') then
    perform resolve_followers(r.job_id, state, at);
  end if;
end $$;

-- The wait before the next attempt: explicit delay, the worker's override, the persisted policy, the compatibility
-- default; all but the first are raised to a retry-after hint. `report` keys as in docs/architecture.md.
create or replace function choose_delay(j job, attempt int, cause text, report jsonb,
  out delay_ms bigint, out source text, out detail jsonb)
language plpgsql set search_path from current as $$
declare
  hint bigint;
begin
  detail := '{}';
  if report ? 'delayMs' then
    if not is_integer(report->'delayMs', 0, 31536000000) then
      perform refuse('invalid_argument', 'delayMs must be an integer from 0 to 31536000000',
        '{"field":"delayMs","low":0,"high":31536000000}');
    end if;
    delay_ms := (report->>'delayMs')::numeric::bigint;
    source := 'override';
    return;
  end if;
  if report ? 'overrideRefused' then
    detail := detail || jsonb_build_object('overrideRefused', left(report->>'overrideRefused', 500));
  end if;
  if report ? 'hintIgnored' then
    detail := detail || jsonb_build_object('hintIgnored', left(report->>'hintIgnored', 500));
  end if;
  if report ? 'workerDelayMs' and cause in ('error', 'timeout') and is_integer(report->'workerDelayMs', 0, 31536000000) then
    delay_ms := (report->>'workerDelayMs')::numeric::bigint;
    source := 'worker_override';
  else
    if report ? 'workerDelayMs' and cause in ('error', 'timeout') and not report ? 'overrideRefused' then
      detail := detail || jsonb_build_object('overrideRefused', format('%s is no integer from 0 to 31536000000', left(report->>'workerDelayMs', 100)));
    end if;
    if j.policy is not null then
      delay_ms := policy_delay(j.policy, j.id, attempt);
      source := policy_source(j.policy);
    elsif cause = 'lease' then
      delay_ms := 0;
      source := 'legacy:lease';
    else
      delay_ms := compatibility_delay(attempt);
      source := 'legacy:error';
    end if;
  end if;
  if report ? 'retryAfterMs' then
    if jsonb_typeof(report->'retryAfterMs') = 'number' and (report->>'retryAfterMs')::numeric > 0 then
      hint := greatest(1000, least(86400000, ceil((report->>'retryAfterMs')::numeric)))::bigint;
      if hint > delay_ms then
        detail := detail || jsonb_build_object('chosenMs', delay_ms, 'chosenSource', source);
        delay_ms := hint;
        source := 'retry_after';
      end if;
    elsif not report ? 'hintIgnored' then
      detail := detail || jsonb_build_object('hintIgnored', format('%s is no number above 0', left(report->>'retryAfterMs', 100)));
    end if;
  end if;
end $$;

-- Keeps the full error text, of the first and the last ten attempts and within 1 MiB a job.
create or replace function keep_error(p_job uuid, p_attempt int2, error jsonb) returns void
language plpgsql set search_path from current as $$
begin
  insert into error_text as t (job_id, attempt, error) values (p_job, p_attempt, error)
  on conflict (job_id, attempt) do update set error = excluded.error;
  delete from error_text t where t.job_id = p_job and t.attempt > 10 and t.attempt <= p_attempt - 10;
  -- Over the bound the middle goes first; the newest always stays.
  delete from error_text t using (
    select e.attempt, sum(octet_length(e.error::text)) over (order by e.attempt = p_attempt desc, e.attempt <= 10 desc, e.attempt desc) as total
    from error_text e where e.job_id = p_job) kept
  where t.job_id = p_job and t.attempt = kept.attempt and kept.total > 1048576 and t.attempt <> p_attempt;
end $$;

-- An error as it is stored: text, bounded, whatever was sent.
create or replace function error_of(report jsonb, cause text) returns jsonb
language sql stable set search_path from current as $$
  select jsonb_strip_nulls(jsonb_build_object(
    'name', left(coalesce(nullif(report->'error'->>'name', ''), cause), 200),
    'message', left(coalesce(report->'error'->>'message', case cause
      when 'lease' then 'the lease ended without a report'
      when 'timeout' then 'the attempt ran longer than its timeout'
      when 'deadline' then 'the job''s deadline came'
      else '' end), 100000),
    'stack', left(report->'error'->>'stack', 100000),
    'causes', case when octet_length((report->'error'->'causes')::text) <= 100000 then report->'error'->'causes' end))
$$;

-- Ends the attempt `r` holds (its row is locked by the caller) for any cause but success. Decides in this order:
-- a pending cancel, an ending that allows no further attempt, the budget, the delay against the deadline.
-- answer: `{"state", "delayMs"?, "source"?, "nextRunAt"?}`. effect: what the caller applies to the endpoint's circuit
-- once all of its attempts are ended; null when nothing.
create or replace function end_attempt(r runtime, at timestamptz, p_cause text, report jsonb, out answer jsonb, out effect jsonb)
language plpgsql set search_path from current as $$
declare
  j job;
  cause text := p_cause;
  error jsonb := error_of(report, p_cause);
  -- What the attempt may have done although it did not succeed.
  unsure boolean := p_cause in ('lease', 'timeout', 'deadline', 'output') or coalesce((report->>'uncertain')::boolean, false);
  state "char";
  reason text;
  chosen_ms bigint;
  chosen_source text;
  chosen_detail jsonb;
  wake timestamptz;
begin
  perform commit_synchronously();
  select * into strict j from job where id = r.job_id;
  if r.cancel is not null then
    cause := 'cancel';
    state := 'c';
    reason := 'canceled';
    unsure := true;
  elsif cause = 'deadline' then
    state := 'f';
    reason := 'deadline';
  elsif cause in ('output', 'input', 'checkpoint') then
    state := 'f';
    reason := cause;
  elsif report->'retryable' = 'false' then
    state := 'f';
    reason := 'non_retryable';
  elsif r.attempt >= j.max_attempts then
    state := 'f';
    reason := 'exhausted';
  else
    select c.delay_ms, c.source, c.detail into chosen_ms, chosen_source, chosen_detail from choose_delay(j, r.attempt, cause, report) c;
    wake := at + ms(chosen_ms);
    if r.deadline <= wake then
      state := 'f';
      reason := 'deadline';
      chosen_ms := null; chosen_source := null; chosen_detail := null; wake := null;
    end if;
  end if;

  insert into attempt (job_id, attempt, claim_id, claim_no, worker_id, claimed_at, ready_at, ended_at, cause, uncertain, reported,
    delay_ms, source, run_at, error_name, error_message, detail)
  values (r.job_id, r.attempt, r.claim_id, r.claim_no, r.worker_id, r.claimed_at, r.ready_at, at, cause, unsure, report ? 'claim',
    chosen_ms, chosen_source, wake, error->>'name', left(error->>'message', 500), nullif(chosen_detail, '{}'));
  if report ? 'error' then
    perform keep_error(r.job_id, r.attempt, error);
  end if;

  -- Neutral: the destination was never called, or nothing was learned about it.
  effect := circuit_effect(r, case
    when r.cancel is not null or cause in ('input', 'checkpoint') or report->'cancellation' = 'true' then 'neutral'
    when cause in ('lease', 'deadline') then 'lost'
    else 'failure' end, at, report ? 'claim', jsonb_build_object('name', error->'name', 'message', left(error->>'message', 500)));

  if state is not null then
    perform end_job(r, at, state, reason, r.uncertain or unsure, case when state = 'c' then r.cancel end);
    answer := jsonb_build_object('state', outcome_state(state), 'reason', reason);
    return;
  end if;
  update runtime w set
    state = case when chosen_ms = 0 then 'r' else 's' end,
    seq = nextval('position'),
    wake_at = case when chosen_ms > 0 then wake end,
    ready_at = case when chosen_ms = 0 then at end,
    uncertain = w.uncertain or unsure,
    claim_id = null, claim_no = null, worker_id = null, claimed_at = null, lease_until = null, progress = null,
    generation = null, probe = null, endpoint_slot = null, queue_slot = null
  where w.job_id = r.job_id;
  answer := jsonb_build_object('state', case when chosen_ms = 0 then 'ready' else 'scheduled' end,
    'delayMs', chosen_ms, 'source', chosen_source, 'nextRunAt', iso(wake));
end $$;

-- What was answered to the failure report of this claim before; null when there was none.
create or replace function earlier_answer(p_job uuid, p_claim uuid, p_number int2, p_cause text) returns jsonb
language sql stable set search_path from current as $$
  select case when a.delay_ms is null
      then jsonb_build_object('state', outcome_state(o.state), 'reason', o.reason)
      else jsonb_build_object('state', case when a.delay_ms = 0 then 'ready' else 'scheduled' end,
        'delayMs', a.delay_ms, 'source', a.source, 'nextRunAt', iso(a.run_at)) end
  from attempt a left join outcome o on o.job_id = a.job_id
  where a.job_id = p_job and a.claim_id = p_claim and a.claim_no = p_number
    and a.reported and a.cause in (p_cause, 'cancel')
$$;

-- reports: `[{"id","claim","number","cause","error",…}]`; returns the answers in the same order.
create or replace function fail(reports jsonb) returns text
language plpgsql security definer set search_path from current set jit = off as $$
declare
  at timestamptz := clock_now();
  given record;
  r runtime;
  ended record;
  answer jsonb;
  answers jsonb := '{}';
  effects jsonb := '[]';
begin
  for given in
    select x.e, x.n, (x.e->>'id')::uuid as job_id, (x.e->>'claim')::uuid as claim_id, (x.e->>'number')::int2 as claim_no
    from jsonb_array_elements(reports) with ordinality x (e, n)
    order by (x.e->>'id')::uuid
  loop
    if coalesce(given.e->>'cause', 'error') not in ('error', 'timeout', 'deadline', 'output', 'input', 'checkpoint') then
      perform refuse('invalid_argument', 'cause must be error, timeout, deadline, output, input or checkpoint', '{"field":"cause"}');
    end if;
    select * into r from runtime w
    where w.job_id = given.job_id and w.claim_id = given.claim_id and w.claim_no = given.claim_no
    for update;
    if found then
      select * into ended from end_attempt(r, at, coalesce(given.e->>'cause', 'error'), given.e);
      answer := ended.answer;
      effects := effects || coalesce(ended.effect, '[]');
    else
      answer := coalesce(earlier_answer(given.job_id, given.claim_id, given.claim_no, coalesce(given.e->>'cause', 'error')), '{"error":"lease_lost"}');
    end if;
    answers := answers || jsonb_build_object(given.n::text, answer);
  end loop;
  perform apply_effects(effects, at);
  return (select coalesce(jsonb_agg(a.value order by a.key::bigint), '[]') from jsonb_each(answers) a)::text;
end $$;

-- Gives claims back: the attempt is not spent, the job keeps its place. Codes as `complete`. `p_started` is false where
-- no handler has seen the jobs: then nothing is uncertain.
create or replace function release(p_jobs uuid[], p_claims uuid[], p_numbers int2[], p_reason text, p_started boolean default true) returns int2[]
language plpgsql security definer set search_path from current set jit = off as $$
declare
  at timestamptz := clock_now();
  given record;
  r runtime;
  code int2;
  codes jsonb := '{}';
  effects jsonb := '[]';
  queues text[];
  types text[];
begin
  perform commit_synchronously();
  for given in
    select * from unnest(p_jobs, p_claims, p_numbers) with ordinality g (job_id, claim_id, claim_no, n) order by g.job_id
  loop
    select * into r from runtime w
    where w.job_id = given.job_id and w.claim_id = given.claim_id and w.claim_no = given.claim_no
    for update;
    if found then
      insert into event (job_id, at, kind, attempt, data)
      values (r.job_id, at, 'released', r.attempt, jsonb_build_object('fence', fence_text(r.claim_id, r.claim_no),
        'reason', left(p_reason, 2000), 'started', p_started, 'workerId', r.worker_id, 'claimedAt', iso(r.claimed_at)));
      if r.cancel is not null then
        -- A released attempt is not counted: whether one had started is told by what is uncertain, and by the event.
        r.attempt := r.attempt - 1;
        perform end_job(r, at, 'c', 'canceled', r.uncertain or p_started, r.cancel);
      else
        update runtime w set state = 'r', attempt = w.attempt - 1, uncertain = w.uncertain or p_started, wake_at = null, claim_id = null, claim_no = null,
          worker_id = null, claimed_at = null, lease_until = null, progress = null, generation = null, probe = null,
          endpoint_slot = null, queue_slot = null
        where w.job_id = r.job_id;
      end if;
      effects := effects || coalesce(circuit_effect(r, 'neutral', at, true), '[]');
      code := 0;
    elsif exists (select from event e where e.job_id = given.job_id and e.kind = 'released'
        and e.data->>'fence' = fence_text(given.claim_id, given.claim_no)) then
      code := 1;
    else
      code := 2;
    end if;
    codes := codes || jsonb_build_object(given.n::text, code);
  end loop;
  perform apply_effects(effects, at);
  if exists (select from sleeper) then
    select array_agg(distinct l.queue), array_agg(distinct l.type) into queues, types
    from job j join lane l on l.id = j.lane_id where j.id = any (p_jobs);
    perform wake_sleepers(queues, types);
  end if;
  if not exists (select from jsonb_each(codes) c where c.value <> '0') then
    return '{}';
  end if;
  return (select array_agg(c.value::text::int2 order by c.key::bigint) from jsonb_each(codes) c);
end $$;

-- Renews leases that have not ended. Per job: 0 accepted, 1 accepted and a cancel was requested, 2 lease lost.
create or replace function heartbeat(p_jobs uuid[], p_claims uuid[], p_numbers int2[], p_lease_ms bigint, p_async_commit boolean default false)
returns int2[]
language plpgsql security definer set search_path from current
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off
as $$
declare
  at timestamptz := clock_now();
  codes int2[];
begin
  if not (p_lease_ms between 100 and 86400000) is true then
    perform refuse('invalid_argument', 'leaseMs must be an integer from 100 to 86400000', '{"field":"leaseMs","low":100,"high":86400000}');
  end if;
  if p_async_commit then
    perform set_config('synchronous_commit', 'off', true);
  end if;
  with given as materialized (
    select * from unnest(p_jobs, p_claims, p_numbers) with ordinality g (job_id, claim_id, claim_no, place) order by g.job_id
  ),
  locked as materialized (
    select r.job_id, g.place from given g join runtime r on r.job_id = g.job_id and r.claim_id = g.claim_id and r.claim_no = g.claim_no
    where coalesce(r.lease_until, r.wake_at) > at
    order by g.job_id
    for update of r
  ),
  renewed as (
    update runtime r set
      wake_at = least(at + ms(p_lease_ms), r.claimed_at + ms(r.timeout_ms), r.deadline),
      lease_until = case when least(r.claimed_at + ms(r.timeout_ms), r.deadline) < at + ms(p_lease_ms) then at + ms(p_lease_ms) end
    from locked l where r.job_id = l.job_id
    returning l.place, r.cancel is not null as canceling
  )
  select array_agg((case when n.place is null then 2 when n.canceling then 1 else 0 end)::int2 order by g.place) into codes
  from given g left join renewed n on n.place = g.place;
  return codes;
end $$;
