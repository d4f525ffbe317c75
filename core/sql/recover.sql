-- What time does to jobs: due ones become ready, ended leases are recovered, deadlines end what never started.
-- Every function works on a bounded batch, in the order of time, and passes over rows that others hold; the row's
-- own columns are tested again under its lock, however old the list is.

-- `since`: rows that were due before it are passed over. A caller that looked a moment ago need not walk again over the
-- dead rows of everything that was due before, which a transaction left open elsewhere may keep; from time to time it
-- looks at all.
create or replace function promote(max_rows int, since timestamptz default '-infinity') returns int
language plpgsql security definer set search_path from current
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off set jit = off
as $$
declare
  at timestamptz := clock_now();
  moved int;
  lanes bigint[];
begin
  with due as materialized (
    select r.job_id from runtime r
    where r.state = 's' and r.wake_at <= at and r.wake_at >= since
    order by r.wake_at
    limit max_rows
    for update skip locked
  ),
  -- Places are given here, in the order of the due times: the update may meet the rows in any order.
  placed as materialized (
    select d.job_id, nextval('position') as seq from due d
  ),
  promoted as (
    update runtime r set state = 'r', seq = p.seq, ready_at = at, wake_at = null
    from placed p where r.job_id = p.job_id
    returning r.lane_id
  )
  select count(*), array_agg(distinct p.lane_id) into moved, lanes from promoted p;
  if moved > 0 and exists (select from sleeper) then
    perform wake_sleepers(array_agg(distinct l.queue), array_agg(distinct l.type)) from lane l where l.id = any (lanes);
  end if;
  return moved;
end $$;

-- Ends active attempts whose earliest limit is over, by the cause that came first; ties: deadline, timeout, lease.
-- While the lease is alive its worker reports a timeout or deadline itself, with its own word on the delay: it gets a
-- second for that.
create or replace function recover(max_rows int, since timestamptz default '-infinity') returns int
language plpgsql security definer set search_path from current set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off set jit = off
as $$
declare
  at timestamptz := clock_now();
  r runtime;
  ended record;
  effects jsonb := '[]';
  done int := 0;
  lanes bigint[] := '{}';
begin
  for r in
    select * from runtime w
    where w.state = 'a' and w.wake_at <= at and w.wake_at >= since
      and (w.lease_until is null or w.lease_until <= at or w.wake_at <= at - interval '1 second')
    order by w.wake_at
    limit max_rows
    for update skip locked
  loop
    select * into ended from end_attempt(r, at, case
      when r.deadline = r.wake_at then 'deadline'
      when r.claimed_at + ms(r.timeout_ms) = r.wake_at then 'timeout'
      else 'lease' end, '{}');
    effects := effects || coalesce(ended.effect, '[]');
    if ended.answer->>'state' = 'ready' then
      lanes := lanes || r.lane_id;
    end if;
    done := done + 1;
  end loop;
  perform apply_effects(effects, at);
  if cardinality(lanes) > 0 and exists (select from sleeper) then
    perform wake_sleepers(array_agg(distinct l.queue), array_agg(distinct l.type)) from lane l where l.id = any (lanes);
  end if;
  return done;
end $$;

-- Ends jobs that may no longer start: their deadline came while they waited.
create or replace function expire(max_rows int) returns int
language plpgsql security definer set search_path from current set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off set jit = off
as $$
declare
  at timestamptz := clock_now();
  r runtime;
  done int := 0;
begin
  for r in
    select * from runtime w
    where w.deadline is not null and w.state <> 'a' and w.deadline <= at
    order by w.deadline
    limit max_rows
    for update skip locked
  loop
    perform end_job(r, at, 'f', 'deadline', r.uncertain);
    done := done + 1;
  end loop;
  return done;
end $$;

-- One round of all three. Every worker offers it; the first of a moment does it, the others get zeros. `full_look` is
-- needed once every few seconds, and after a round that left something. `next_ms` knows due times, deadlines and probes,
-- not leases: the first live lease hides behind the dead rows of all attempts that ended before theirs.
create or replace function tick(max_rows int, full_look boolean default true)
returns table (promoted int, recovered int, expired int, more boolean, next_ms bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
declare
  since timestamptz := case when full_look then '-infinity' else clock_now() - interval '3 seconds' end;
begin
  promoted := 0; recovered := 0; expired := 0; more := false;
  if pg_try_advisory_xact_lock('runtime'::regclass::oid::int, 1) then
    promoted := promote(max_rows, since);
    recovered := recover(max_rows, since);
    expired := expire(max_rows);
    perform expire_probes();
    more := greatest(promoted, recovered, expired) >= max_rows;
    select ms_between(clock_now(), least(
      (select min(c.overdue_at) from circuit c where c.state = 'h'),
      (select min(r.wake_at) from runtime r where r.state = 's' and r.wake_at >= since),
      (select min(r.deadline) from runtime r where r.deadline is not null and r.state <> 'a'))) into next_ms;
    next_ms := greatest(0, next_ms);
  end if;
  return next;
end $$;
