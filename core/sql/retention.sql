-- Retention: the only way out for definitions and evidence. Whole jobs go by the age of their end, in bounded batches;
-- an outcome goes together with its evidence, never after it.

create or replace function prune(max_rows int default 1000) returns int
language plpgsql security definer set search_path from current set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := clock_now();
  succeeded_before timestamptz;
  other_before timestamptz;
  ids uuid[];
begin
  if not pg_try_advisory_xact_lock('runtime'::regclass::oid::int, 2) then
    return 0;
  end if;
  select at - ms(s.keep_succeeded_ms), at - ms(s.keep_other_ms) into succeeded_before, other_before from settings s;
  -- The two ages are asked apart, so that many young failures among old successes are not walked over.
  select array_agg(o.job_id) into ids from (
    (select job_id from outcome where state = 's' and finished_at < succeeded_before limit max_rows)
    union all
    (select job_id from outcome where state <> 's' and finished_at < other_before limit max_rows)
    limit max_rows) o;
  delete from idempotency k where k.key in (
    select i.key from idempotency i where i.expires_at < at order by i.expires_at limit max_rows);
  delete from worker w where w.seen_at < at - interval '7 days';
  delete from gate_event e where e.id in (
    select g.id from gate_event g where g.at < other_before order by g.id limit max_rows);
  delete from sleeper s where s.until < at - interval '1 minute';
  if ids is null then
    return 0;
  end if;
  insert into retention_pass values (pg_current_xact_id()) on conflict do nothing;
  delete from event e where e.job_id = any (ids);
  delete from error_text e where e.job_id = any (ids);
  delete from checkpoint c where c.job_id = any (ids);
  delete from redrive_request q where q.source_id = any (ids);
  delete from attempt a where a.job_id = any (ids);
  delete from outcome o where o.job_id = any (ids);
  delete from job j where j.id = any (ids);
  delete from run r where r.finished_at < other_before and not exists (select from job j where j.run_id = r.id);
  delete from retention_pass;
  return cardinality(ids);
end $$;

create or replace function rpc_prune(args jsonb) returns text
language sql security definer set search_path from current as $$
  select jsonb_build_object('jobs', prune(arg_integer(args, 'limit', 1, 100000, 1000)::int))::text
$$;
