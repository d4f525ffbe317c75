-- Why a job that has not ended is not running, and what helps: one or more reasons, each with its action.

create or replace function seconds_until(at timestamptz, t timestamptz) returns text language sql stable parallel safe as $$
  select round(greatest(0, extract(epoch from (t - at)))::numeric, 1)::text
$$;

create or replace function gate_reasons(p_kind "char", p_name text, p_synthetic boolean, at timestamptz) returns jsonb
language plpgsql stable set search_path from current as $$
declare
  reasons jsonb := '[]';
  g gate;
  c circuit;
  noun text := case when p_kind = 'e' then 'endpoint ' else 'queue ' end || p_name;
  used int;
begin
  select * into g from gate h where h.kind = p_kind and h.name = p_name;
  if not found then
    return reasons;
  end if;
  if g.paused is not null then
    reasons := reasons || jsonb_build_object('kind', 'paused', 'name', p_name, 'by', g.paused->'actor', 'since', g.paused->'at',
      'message', format('%s paused by %s since %s%s', noun, g.paused->>'actor', g.paused->>'at', coalesce(': ' || (g.paused->>'reason'), '')),
      'action', format('resume the %s when it may work again', case when p_kind = 'e' then 'endpoint' else 'queue' end));
  end if;
  if g.rate_limit is not null and tokens_left(g, at) = 0 then
    reasons := reasons || jsonb_build_object('kind', 'rate', 'name', p_name,
      'message', format('rate of %s: %s per %s ms, no token left', noun, g.rate_limit, g.rate_interval_ms), 'action', 'none: the next token comes by itself');
  end if;
  if g.max_concurrency is not null then
    used := slots_used(g, at);
    if used >= g.max_concurrency then
      reasons := reasons || jsonb_build_object('kind', 'concurrency', 'name', p_name, 'used', used, 'limit', g.max_concurrency,
        'message', format('concurrency of %s: %s/%s', noun, used, g.max_concurrency), 'action', 'none: a slot is free when an attempt or its lease ends');
    end if;
  end if;
  select * into c from circuit k where k.gate_id = g.id;
  if found and not p_synthetic and circuit_state(c) <> 'closed' then
    reasons := reasons || jsonb_build_object('kind', 'circuit', 'name', p_name, 'state', circuit_state(c), 'openedAt', iso(c.opened_at), 'probeAt', iso(c.probe_at),
      'message', case
        when c.forced = 'o' then format('circuit of %s forced open', noun)
        when c.state = 'h' then format('circuit of %s half-open: probe %s is out', noun, c.probe_job)
        when c.probe_at > at then format('circuit of %s open since %s, probe possible in %s s', noun, iso(c.opened_at), seconds_until(at, c.probe_at))
        else format('circuit of %s open since %s, a probe is possible now', noun, iso(c.opened_at)) end,
      'lastError', c.last_error,
      'action', case when c.forced = 'o' then 'reset the circuit when the endpoint may work again'
        else 'none while the destination is down: wait; if credentials or input are wrong, fix them, then replay' end);
  end if;
  return reasons;
end $$;

create or replace function waiting(r runtime, l lane, at timestamptz) returns jsonb
language plpgsql stable set search_path from current set enable_seqscan = off set jit = off as $$
declare
  reasons jsonb := '[]';
  ahead bigint;
  j job;
begin
  if r.state = 'a' then
    return '[]';
  end if;
  if r.state = 'b' then
    select * into j from job where id = r.job_id;
    reasons := reasons || jsonb_build_object('kind', 'after', 'jobId', j.after_id,
      'message', format('waits for job %s to be %s', j.after_id, case j.after_on when 's' then 'succeeded' else 'failed' end), 'action', 'none: it is decided when that job ends');
  end if;
  if r.state = 's' then
    reasons := reasons || jsonb_build_object('kind', 'due', 'dueInMs', greatest(0, ms_between(at, r.wake_at)), 'runAt', iso(r.wake_at),
      'message', format('due in %s s', seconds_until(at, r.wake_at)), 'action', 'none: it becomes ready by itself');
  end if;
  reasons := reasons || gate_reasons('q', l.queue, l.synthetic, at);
  if l.endpoint is not null then
    reasons := reasons || gate_reasons('e', l.endpoint, l.synthetic, at);
  end if;
  if not exists (select from worker w where w.stopped_at is null and w.seen_at > at - interval '60 seconds' and l.queue = any (w.queues)
      and exists (select from unnest(w.types, w.versions) h (type, version) where h.type = l.type and h.version = l.version)) then
    reasons := reasons || jsonb_build_object('kind', 'no_worker',
      'message', format('no worker handles %s@%s in queue %s', l.type, l.version, l.queue),
      'action', 'deploy a worker that handles exactly this type and version; editing the policy changes nothing');
  end if;
  if reasons = '[]' then
    select count(*) into ahead from (
      select from runtime x where x.lane_id = r.lane_id and x.state = 'r' and x.seq < r.seq order by x.lane_id, x.seq limit 10000) a;
    reasons := reasons || jsonb_build_object('kind', 'eligible', 'ahead', ahead,
      'message', format('eligible, %s%s ahead in its lane; workers are full or none polls', ahead, case when ahead = 10000 then ' or more' else '' end),
      'action', 'none, or more worker slots');
  end if;
  return reasons;
end $$;

-- For people who only have psql: the same as views. Behind each stands a function with the owner's rights, so that a
-- reader needs a right on the view and that function alone.
create or replace function waiting_rows()
returns table (job_id uuid, queue text, type text, version text, endpoint text, state text, attempt int, reason text, message text, action text)
language sql stable security definer set search_path from current as $$
  select r.job_id, l.queue, l.type, l.version, l.endpoint, live_state(r.state), r.attempt::int, w->>'kind', w->>'message', w->>'action'
  from runtime r
  cross join lateral lane_row(r.lane_id) l
  cross join lateral jsonb_array_elements(waiting(r, l, clock_now())) w
  where r.state <> 'a'
$$;

create or replace function endpoint_rows()
returns table (name text, circuit text, failures int, since timestamptz, probe_at timestamptz, probe_job uuid, last_error jsonb,
  paused boolean, waiting bigint, running bigint)
language sql stable security definer set search_path from current as $$
  select s->>'name', s->'circuit'->>'state', (s->'circuit'->>'failures')::int, (s->'circuit'->>'since')::timestamptz,
    (s->'circuit'->>'probeAt')::timestamptz, (s->'circuit'->>'probeJob')::uuid, nullif(s->'circuit'->'lastError', 'null'),
    s->'paused' <> 'null', (s->>'waiting')::bigint, (s->>'running')::bigint
  from (select gate_snapshot('e', name) as s from gate_names('e') name) x
$$;

create or replace view waiting_jobs as select * from waiting_rows();
create or replace view endpoints as select * from endpoint_rows();
