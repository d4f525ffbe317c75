-- Claims: from ready to active, the attempt counted and the lease begun in one statement.
-- Planner settings are pinned: with the statistics of an empty table another plan is many times dearer, and some
-- plans take more rows than the limit.

-- The fence that callers see.
create or replace function fence_text(claim uuid, number int2) returns text language sql immutable parallel safe
as $$ select claim::text || '/' || number::text $$;

-- What a handler is told beyond the usual; null in the usual case.
create or replace function claim_extra(j job, r runtime) returns text language sql stable parallel safe as $$
  select case when j.tags is null and j.max_attempts = 25 and j.deadline is null and j.effect_key is null
      and j.run_id is null and not j.synthetic and not j.contracted and not r.checkpoints then null
    else jsonb_strip_nulls(jsonb_build_object(
      'tags', to_jsonb(j.tags),
      'maxAttempts', nullif(j.max_attempts, 25),
      'deadline', iso(j.deadline),
      -- Which of the two limits `ends_ms` is.
      'endsBy', case when r.deadline <= coalesce(r.claimed_at + ms(r.timeout_ms), 'infinity') then 'deadline' end,
      'idempotencyKey', j.effect_key,
      'runId', j.run_id,
      'synthetic', nullif(j.synthetic, false),
      'contract', nullif(j.contracted, false),
      'checkpoints', nullif(r.checkpoints, false)))::text end
$$;

-- Takes up to quotas[i] rows from lanes[i] at or after hints[i], max_jobs in all, in the order of the lanes.
-- A hint is the caller's memory of where the lane's first claimable row was; it only saves the walk over dead rows.
-- p_numbered: how many rows the same claim has already taken.
-- Lanes behind a gate that has something to take are asked one by one under the gate's lock; who finds it locked
-- passes on, since another claim is just taking from it. Nothing here waits. A claim that meets such a lane takes all
-- its lanes one by one, so that the order holds; the others take all of them in one statement.
-- A claim is stamped in the statement that takes the rows: a moment from before its snapshot may be earlier than the
-- enqueue, the promotion or the due time of what it finds.
create or replace function claim_lanes(p_worker int, p_claim uuid, p_lanes bigint[], p_hints bigint[], p_quotas int[],
  p_max_jobs int, p_lease_ms bigint, p_async_commit boolean, p_numbered int default 0)
returns table (job_id uuid, claim_no int2, lane_id bigint, seq bigint, attempt int2, ends_ms bigint, payload text, extra text)
language plpgsql security definer set search_path from current
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off set jit = off
as $$
declare
  at timestamptz := clock_now();
  lanes bigint[] := p_lanes;
  hints bigint[] := p_hints;
  quotas int[] := p_quotas;
  generations int[];
  v record;
  one_by_one boolean;
  took boolean := false;
  picks gated_pick[] := '{}';
  more gated_pick[];
  failed_last int[] := '{}';
begin
  if exists (select from gate) then
    select coalesce(bool_or(x.verdict = 'gated'), false) into one_by_one from lane_verdicts(p_lanes, at) x;
    lanes := '{}'; hints := '{}'; quotas := '{}'; generations := '{}';
    for v in select * from lane_verdicts(p_lanes, at) x where x.verdict <> 'blocked' order by x.place loop
      if not one_by_one then
        lanes := lanes || v.lane_id;
        hints := hints || p_hints[v.place];
        quotas := quotas || p_quotas[v.place];
        generations := generations || v.generation;
        continue;
      end if;
      exit when cardinality(picks) >= p_max_jobs;
      if v.verdict = 'gated' then
        more := pick_gated(v.lane_id, p_hints[v.place], least(p_quotas[v.place], p_max_jobs - cardinality(picks)), p_claim, v.synthetic,
          v.queue_gate, v.endpoint_gate, v.generation, v.place, picks, at, false);
        took := took or cardinality(more) > 0;
        if v.probing and cardinality(more) = 0 then
          failed_last := failed_last || v.place;
        end if;
      else
        more := pick_free(v.lane_id, p_hints[v.place], least(p_quotas[v.place], p_max_jobs - cardinality(picks)), v.generation, v.place, at);
      end if;
      picks := picks || more;
    end loop;
    -- No lane had another job for a probe: then it is the one that failed last.
    if cardinality(failed_last) > 0 then
      for v in select * from lane_verdicts(p_lanes, at) x where x.place = any (failed_last) order by x.place loop
        exit when cardinality(picks) >= p_max_jobs;
        more := pick_gated(v.lane_id, p_hints[v.place], 1, p_claim, v.synthetic, v.queue_gate, v.endpoint_gate, v.generation, v.place, picks, at, true);
        took := took or cardinality(more) > 0;
        picks := picks || more;
      end loop;
    end if;
  end if;
  if p_async_commit and not took then
    -- A claim that took no token, slot or probe: one that a crash of the database forgets only offers the job again.
    perform set_config('synchronous_commit', 'off', true);
  end if;
  return query
  with clock as materialized (
    select clock_now() as now
  ),
  picked as materialized (
    select x.job_id, (p_numbered + row_number() over (order by x.place, x.seq))::int2 as number, x.generation, x.probe, x.endpoint_slot, x.queue_slot,
      coalesce(x.at, (select c.now from clock c)) as at
    from (
      (select y.job_id, y.seq, l.place, l.generation, null::boolean as probe, null::int as endpoint_slot, null::int as queue_slot,
        null::timestamptz as at
      from unnest(lanes, hints, quotas, generations) with ordinality l (lane_id, hint, quota, generation, place)
      cross join lateral (
        select r.job_id, r.seq from runtime r
        where r.lane_id = l.lane_id and r.state = 'r' and r.seq >= l.hint and (r.deadline is null or r.deadline > at)
        order by r.lane_id, r.seq
        limit l.quota
        for no key update skip locked) y
      limit p_max_jobs)
      union all
      select g.job_id, g.seq, g.place, g.generation, g.probe, g.endpoint_slot, g.queue_slot, g.at from unnest(picks) g
    ) x
  ),
  taken as (
    update runtime r set
      state = 'a',
      attempt = r.attempt + 1,
      claim_id = p_claim,
      claim_no = p.number,
      worker_id = p_worker,
      claimed_at = p.at,
      wake_at = least(p.at + ms(p_lease_ms), p.at + ms(r.timeout_ms), r.deadline),
      lease_until = case when r.timeout_ms < p_lease_ms or r.deadline < p.at + ms(p_lease_ms) then p.at + ms(p_lease_ms) end,
      generation = p.generation,
      probe = p.probe,
      endpoint_slot = p.endpoint_slot,
      queue_slot = p.queue_slot
    from picked p
    where r.job_id = p.job_id
    returning r as row
  )
  select (t.row).job_id, (t.row).claim_no, (t.row).lane_id, (t.row).seq, (t.row).attempt,
    case when (t.row).timeout_ms is not null or (t.row).deadline is not null
      then ms_between((t.row).claimed_at, least((t.row).claimed_at + ms((t.row).timeout_ms), (t.row).deadline)) end,
    j.payload, claim_extra(j, t.row)
  from taken t join job j on j.id = (t.row).job_id
  order by (t.row).claim_no;
end $$;

-- Rows of one lane that nothing gates.
create or replace function pick_free(p_lane bigint, p_hint bigint, p_quota int, p_generation int, p_place int, at timestamptz) returns gated_pick[]
language plpgsql set search_path from current
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
begin
  return coalesce((
    select array_agg(row(x.job_id, x.seq, p_place, p_generation, null, null, null, null, null)::gated_pick order by x.seq) from (
      select r.job_id, r.seq from runtime r
      where r.lane_id = p_lane and r.state = 'r' and r.seq >= p_hint and (r.deadline is null or r.deadline > at)
      order by r.lane_id, r.seq
      limit p_quota
      for no key update skip locked) x), '{}');
end $$;

-- Rows of one lane behind locked gates, with all that they take: tokens, slots, the probe. An endpoint that has nothing
-- to give is not locked: its circuit is closed, in the generation of the verdict. A probe rather tries another job than
-- the one that failed last, which is taken only where p_failed_last says so.
create or replace function pick_gated(p_lane bigint, p_hint bigint, p_quota int, p_claim uuid, p_synthetic boolean,
  p_queue_gate int, p_endpoint_gate int, p_generation int, p_place int, picked gated_pick[], at timestamptz,
  p_failed_last boolean)
returns gated_pick[]
language plpgsql set search_path from current
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off set jit = off
as $$
declare
  wanted int[] := array_remove(array[p_queue_gate, p_endpoint_gate], null);
  locked int;
  q gate;
  e gate;
  c circuit;
  room int := p_quota;
  probing boolean := false;
  rows gated_pick[];
  lengths bigint;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform refuse('wrong_state', 'claims through gates need the isolation level read committed', '{"field":"isolation"}');
  end if;
  select count(*) into locked from (
    select from gate g where g.id = any (wanted) order by g.id for update skip locked) x;
  if locked < cardinality(wanted) then
    return '{}';
  end if;
  -- Only now are the rows what they were locked as: a statement does not read again what it merely locked.
  select * into q from gate g where g.id = p_queue_gate;
  select * into e from gate g where g.id = p_endpoint_gate;
  select * into c from circuit k where k.gate_id = p_endpoint_gate;
  if q.paused is not null or e.paused is not null or (not p_synthetic and circuit_holds(c, at)) then
    return '{}';
  end if;
  room := least(room,
    tokens_left(q, at), tokens_left(e, at),
    q.max_concurrency - slots_used(q, at) - (select count(*) from unnest(picked) x where x.queue_slot = q.id),
    e.max_concurrency - slots_used(e, at) - (select count(*) from unnest(picked) x where x.endpoint_slot = e.id));
  if not p_synthetic and c.state = 'o' and c.forced is null then
    probing := true;
    room := least(room, 1);
  end if;
  if room <= 0 then
    return '{}';
  end if;
  select array_agg(row(x.job_id, x.seq, p_place, case when p_endpoint_gate is null then p_generation else c.generation end, nullif(probing, false),
      case when e.max_concurrency is not null then e.id end, case when q.max_concurrency is not null then q.id end, x.timeout_ms, clock.now)::gated_pick order by x.seq),
    coalesce(max(clock.now), at)
  into rows, at
  from (select clock_now() as now) clock
  cross join (
    select r.job_id, r.seq, r.timeout_ms from runtime r
    where r.lane_id = p_lane and r.state = 'r' and r.seq >= p_hint and (r.deadline is null or r.deadline > at)
      and (not probing or p_failed_last or r.job_id is distinct from c.last_failed_job)
    order by r.lane_id, r.seq
    limit room
    for no key update skip locked) x;
  if rows is null then
    return '{}';
  end if;
  perform take_tokens(q, cardinality(rows), at), take_tokens(e, cardinality(rows), at);
  if probing then
    update circuit k set state = 'h', probe_job = (rows[1]).job_id, probe_claim = p_claim,
      overdue_at = at + ms(coalesce((rows[1]).timeout_ms, e.probe_timeout_ms)), changed_at = at
    where k.gate_id = e.id;
    perform tell_gate('e', e.name, at, 'probe_started', (rows[1]).job_id, jsonb_build_object('overdueAt', iso(at + ms(coalesce((rows[1]).timeout_ms, e.probe_timeout_ms)))));
  end if;
  return rows;
end $$;

-- The rows of a claim whose reply was lost.
create or replace function claimed(p_claim uuid)
returns table (job_id uuid, claim_no int2, lane_id bigint, seq bigint, attempt int2, ends_ms bigint, payload text, extra text)
language plpgsql stable security definer set search_path from current as $$
declare
  at timestamptz := clock_now();
begin
  return query
  select r.job_id, r.claim_no, r.lane_id, r.seq, r.attempt,
    case when r.timeout_ms is not null or r.deadline is not null
      then ms_between(at, least(r.claimed_at + ms(r.timeout_ms), r.deadline)) end,
    j.payload, claim_extra(j, r)
  from runtime r join job j on j.id = r.job_id
  where r.state = 'a' and r.claim_id = p_claim
  order by r.claim_no;
end $$;

-- Which of these lanes have a claimable row at or after their hint, and where. Lanes whose gates hold everything back
-- are left out: they cost nothing, however many jobs wait in them.
create or replace function lanes_ready(p_lanes bigint[], p_hints bigint[])
returns table (lane_id bigint, head_seq bigint)
language plpgsql stable security definer set search_path from current
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off set jit = off
as $$
declare
  lanes bigint[] := p_lanes;
  hints bigint[] := p_hints;
begin
  if exists (select from gate) then
    select array_agg(v.lane_id), array_agg(p_hints[v.place]) into lanes, hints
    from lane_verdicts(p_lanes, clock_now()) v where v.verdict <> 'blocked';
  end if;
  return query
  select l.lane_id, x.seq from unnest(lanes, hints) l (lane_id, hint)
  cross join lateral (
    select r.seq from runtime r
    where r.lane_id = l.lane_id and r.state = 'r' and r.seq >= l.hint
    order by r.lane_id, r.seq
    limit 1) x;
end $$;

-- For loops written by hand, in any language or psql: picks the lanes itself, by priority and then in fair turns,
-- and first promotes and recovers a bounded batch, so that such a loop sees retries without another process.
create or replace function claim(queues text[], handlers jsonb, max_jobs int default 1, lease_ms bigint default 30000,
  claim_id uuid default gen_random_uuid(), worker int default null)
returns table (id uuid, fence text, queue text, type text, version text, attempt int, max_attempts int, priority int,
  endpoint text, has_payload boolean, payload jsonb, tags text[], deadline timestamptz, timeout_ms bigint,
  lease_until timestamptz, idempotency_key text, run_id uuid, synthetic boolean)
language plpgsql security definer set search_path from current set jit = off
as $$
#variable_conflict use_column
declare
  every_lane bigint[];
  priorities int2[];
  lanes bigint[];
  quotas int[];
  spent bigint[];
  needed int := max_jobs;
  starved int;
  got bigint;
  this_claim uuid := claim_id;
  this_worker int := worker;
  this_lease_ms bigint := lease_ms;
begin
  if not (max_jobs between 1 and 1000) is true then
    perform refuse('invalid_argument', 'limit must be an integer from 1 to 1000', '{"field":"limit","low":1,"high":1000}');
  end if;
  if not (lease_ms between 100 and 86400000) is true then
    perform refuse('invalid_argument', 'leaseMs must be an integer from 100 to 86400000', '{"field":"leaseMs","low":100,"high":86400000}');
  end if;
  if jsonb_typeof(handlers) is distinct from 'array' or exists (
      select from jsonb_array_elements(handlers) h
      where case when jsonb_typeof(h) <> 'object' then true
        else not is_name(h->'type', 200) or (h ? 'version' and not is_name(h->'version', 200)) or h - array['type', 'version'] <> '{}' end) then
    perform refuse('invalid_argument', 'handlers must be an array of {"type", "version"}', '{"field":"handlers"}');
  end if;
  if coalesce(cardinality(queues), 0) = 0 or exists (select from unnest(queues) q where (octet_length(q) between 1 and 200) is not true) then
    perform refuse('invalid_argument', 'queues must be names of 1 to 200 bytes', '{"field":"queues"}');
  end if;

  -- Nothing is taken again when the same claim is asked for once more after a lost reply, nor while the first send of it
  -- is still at work.
  perform pg_advisory_xact_lock(hashtextextended(this_claim::text, 0));
  if not exists (select from claimed(this_claim)) then
    perform promote(greatest(100, max_jobs));
    perform recover(greatest(100, max_jobs));
    perform expire(100);
    perform expire_probes();
    select array_agg(l.lane_id), array_agg(l.priority) into every_lane, priorities
    from worker_lanes(queues,
      array(select h->>'type' from jsonb_array_elements(handlers) h),
      array(select coalesce(h->>'version', '1') from jsonb_array_elements(handlers) h)) l;
    if every_lane is not null then
      -- Every 20th row claimed from this schema goes to the ungated lane whose head has waited longest, so nothing starves.
      select count(*) filter (where nextval('turn') % 20 = 0) into starved from generate_series(1, max_jobs);
      if starved > 0 then
        select array_agg(h.lane_id) into lanes from (
          select r.lane_id from lanes_ready(every_lane, array_fill(0::bigint, array[cardinality(every_lane)])) r
          join lane_verdicts(every_lane, clock_now()) v on v.lane_id = r.lane_id and v.verdict = 'free'
          order by r.head_seq limit starved) h;
        if lanes is not null then
          select count(*) into got from claim_lanes(this_worker, this_claim, lanes, array_fill(0::bigint, array[cardinality(lanes)]),
            array_fill(1, array[cardinality(lanes)]), starved, this_lease_ms, false);
          needed := needed - got::int;
        end if;
      end if;
      -- Turns: the lanes of the highest priority that have work share what is wanted; then the next priority.
      while needed > 0 loop
        select array_agg(h.lane_id), array_agg(h.share) into lanes, quotas from (
          select ready.lane_id, ceil(needed / (count(*) over ())::numeric)::int as share from (
            select r.lane_id, dense_rank() over (order by l.priority desc) as rank
            from lanes_ready(every_lane, array_fill(0::bigint, array[cardinality(every_lane)])) r
            join unnest(every_lane, priorities) l (lane_id, priority) on l.lane_id = r.lane_id) ready
          where ready.rank = 1
          order by random()
          -- Where a probe may be taken all lanes are asked at once, so that it can be any job but the one that failed last.
          limit case when not exists (select from circuit c where c.state = 'o') then needed end) h;
        exit when lanes is null;
        with taken as materialized (
          select t.lane_id from claim_lanes(this_worker, this_claim, lanes, array_fill(0::bigint, array[cardinality(lanes)]),
            quotas, needed, this_lease_ms, false, max_jobs - needed) t),
        given as (
          select l.lane_id, l.quota, (select count(*) from taken t where t.lane_id = l.lane_id) as rows
          from unnest(lanes, quotas) l (lane_id, quota))
        select sum(g.rows), coalesce(array_agg(g.lane_id) filter (where g.rows < g.quota), '{}') into got, spent from given g;
        needed := needed - got::int;
        -- A lane that gave less than its share has no more to give, be it for its gates: it must not stand before others.
        select array_agg(l.lane_id), array_agg(l.priority) into every_lane, priorities
        from unnest(every_lane, priorities) l (lane_id, priority) where l.lane_id <> all (spent);
        exit when every_lane is null;
      end loop;
    end if;
  end if;
  return query
  select r.job_id, fence_text(r.claim_id, r.claim_no), l.queue, l.type, l.version, r.attempt::int, j.max_attempts::int,
    l.priority::int, l.endpoint, j.payload is not null, j.payload::jsonb, j.tags, j.deadline, j.timeout_ms,
    coalesce(r.lease_until, r.wake_at), coalesce(j.effect_key, j.id::text), j.run_id, j.synthetic
  from runtime r join job j on j.id = r.job_id
  cross join lateral (select * from lane l where l.id = r.lane_id limit 1) l
  where r.state = 'a' and r.claim_id = this_claim
  order by r.claim_no, r.seq;
end $$;
