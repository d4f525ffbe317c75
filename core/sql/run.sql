-- Runs, and jobs that wait for other jobs: follow-ups, fallbacks, branches not taken.

-- Decides the jobs that wait for an ended one: the branch it took becomes ready, the others are skipped, and what
-- waited for a skipped or canceled job is skipped with it.
create or replace function resolve_followers(p_ended uuid, p_state "char", at timestamptz) returns void
language plpgsql set search_path from current set enable_seqscan = off set jit = off as $$
declare
  r runtime;
  j job;
begin
  for r in select * from runtime w where w.after_id = p_ended and w.state = 'b' order by w.job_id for update loop
    select * into strict j from job where id = r.job_id;
    if j.after_on = p_state then
      update runtime w set
        state = case when j.run_at > at then 's' else 'r' end,
        wake_at = case when j.run_at > at then j.run_at end,
        seq = nextval('position'), ready_at = case when j.run_at > at then null else at end, after_id = null
      where w.job_id = r.job_id;
      insert into event (job_id, at, kind, data) values (r.job_id, at, 'unblocked', jsonb_build_object('afterId', p_ended, 'state', outcome_state(p_state)));
      if exists (select from sleeper) then
        perform wake_sleepers(array[l.queue], array[l.type]) from lane_row(r.lane_id) l;
      end if;
    else
      perform end_job(r, at, 'k', 'skipped', false, jsonb_build_object('afterId', p_ended, 'state', outcome_state(p_state)));
    end if;
  end loop;
end $$;

-- The job may have ended between the enqueue of its follower and the commit. This runs at the commit, with the
-- predecessor's live row locked for no longer than that, so that an open transaction holds no worker up.
create or replace function recheck_predecessor() returns trigger language plpgsql security definer set search_path from current as $$
declare
  ended outcome;
begin
  perform from runtime w where w.job_id = new.after_id for key share;
  if not found then
    select * into ended from outcome o where o.job_id = new.after_id;
    if found then
      perform resolve_followers(new.after_id, ended.state, clock_now());
    end if;
  end if;
  return null;
end $$;

create or replace function start_run(p_name text, p_id uuid default uuid7()) returns uuid
language plpgsql security definer set search_path from current as $$
begin
  perform check_name(jsonb_build_object('name', p_name), '', 'name', 200);
  insert into run (id, name, started_at) values (p_id, p_name, clock_now()) on conflict do nothing;
  return p_id;
end $$;

create or replace function rpc_start_run(args jsonb) returns text language plpgsql security definer set search_path from current as $$
begin
  return jsonb_build_object('id', start_run(arg_text(args, 'name', 200, true), case when args ? 'id' then arg_uuid(args, 'id') else uuid7() end))::text;
end $$;

create or replace function rpc_finish_run(args jsonb) returns text language plpgsql security definer set search_path from current as $$
begin
  update run r set finished_at = coalesce(r.finished_at, clock_now()) where r.id = arg_uuid(args, 'id');
  if not found then
    perform refuse('not_found', format('there is no run %s', args->>'id'), '{"field":"id"}');
  end if;
  return rpc_get_run(args);
end $$;

-- Whether a failed job of a run was made good: by a fallback or a replay that succeeded, or was made good itself.
create or replace function made_good(p_job uuid, p_run uuid) returns boolean
language plpgsql stable set search_path from current set enable_seqscan = off set jit = off as $$
begin
  return exists (
    select from job j join outcome o on o.job_id = j.id
    where j.run_id = p_run and ((j.after_id = p_job and j.after_on = 'f') or j.source_id = p_job)
      and (o.state = 's' or (o.state = 'f' and made_good(j.id, p_run))));
end $$;

create or replace function rpc_get_run(args jsonb) returns text
language plpgsql stable security definer set search_path from current set jit = off as $$
declare
  r run;
  counted jsonb;
  live bigint;
  verdict text;
begin
  select * into r from run x where x.id = arg_uuid(args, 'id');
  if not found then
    return 'null';
  end if;
  select coalesce(jsonb_object_agg(c.state, c.n), '{}'), coalesce(sum(c.n) filter (where c.live), 0) into counted, live from (
    select coalesce(outcome_state(o.state), live_state(w.state)) as state, o.job_id is null as live, count(*) as n
    from job j left join outcome o on o.job_id = j.id left join runtime w on w.job_id = j.id
    where j.run_id = r.id group by 1, 2) c;
  verdict := case
    when r.finished_at is null or live > 0 then 'running'
    when exists (select from job j join outcome o on o.job_id = j.id where j.run_id = r.id and o.state = 'f' and not made_good(j.id, r.id)) then 'failed'
    when counted ? 'canceled' and not counted ? 'succeeded' then 'canceled'
    else 'succeeded' end;
  return jsonb_build_object('id', r.id, 'name', r.name, 'state', verdict, 'startedAt', iso(r.started_at), 'finishedAt', iso(r.finished_at), 'jobs', counted,
    'jobIds', coalesce((select jsonb_agg(x.id order by x.id) from (select j.id from job j where j.run_id = r.id order by j.id limit 1000) x), '[]'))::text;
end $$;
