-- The circuit breaker of an endpoint: closed, open, half-open. Reports give *effects*; they are applied at the end of
-- the reporting statement, in the order of the endpoints' ids, so that two of them never wait for each other
-- crosswise. Every transition begins a new generation, and an effect counts only for the generation of its claim.

-- What an ended attempt means for its endpoint's circuit; null when it means nothing.
-- what: success, failure, lost (a probe that proved nothing), neutral.
create or replace function circuit_effect(r runtime, what text, at timestamptz, reported boolean, error jsonb default null) returns jsonb
language plpgsql stable set search_path from current as $$
declare
  l lane := lane_row(r.lane_id);
  in_time boolean := not reported or coalesce(r.lease_until, r.wake_at) > at;
begin
  if l.endpoint is null or l.synthetic then
    return null;
  end if;
  if not in_time then
    what := 'lost';
  end if;
  if what in ('lost', 'neutral') and r.probe is not true then
    return null;
  end if;
  return jsonb_build_object('endpoint', l.endpoint, 'generation', coalesce(r.generation, 0), 'probe', r.probe is true,
    'job', r.job_id, 'claim', r.claim_id, 'what', what, 'error', error);
end $$;

create or replace function cool_down(p_gate gate, at timestamptz) returns void
language sql set search_path from current as $$
  update circuit set state = 'o', generation = generation + 1, probe_at = at + ms(p_gate.cooldown_ms),
    probe_job = null, probe_claim = null, overdue_at = null, changed_at = at
  where gate_id = p_gate.id;
$$;

-- Lets waiting workers look again at an endpoint's lanes.
create or replace function wake_endpoint(p_endpoint text) returns void
language plpgsql set search_path from current as $$
begin
  if exists (select from sleeper) then
    perform wake_sleepers(array_agg(distinct l.queue), array_agg(distinct l.type)) from lane l where l.endpoint = p_endpoint;
  end if;
end $$;

create or replace function apply_effects(effects jsonb, at timestamptz) returns void
language plpgsql set search_path from current as $$
declare
  f record;
  g gate;
  c circuit;
  overdue boolean;
begin
  for f in
    select x.e, x.e->>'endpoint' as endpoint, x.e->>'what' as what, (x.e->>'generation')::int as generation, (x.e->>'probe')::boolean as probe,
      (x.e->>'job')::uuid as job, (x.e->>'claim')::uuid as claim
    from jsonb_array_elements(effects) with ordinality x (e, n)
    left join gate held on held.kind = 'e' and held.name = x.e->>'endpoint'
    where jsonb_typeof(x.e) = 'object'
    order by held.id nulls last, x.e->>'endpoint', x.n
  loop
    if f.what = 'success' then
      -- Most successes meet a closed circuit without failures: nothing is locked or written for them.
      perform from gate h join circuit k on k.gate_id = h.id
      where h.kind = 'e' and h.name = f.endpoint and (k.state <> 'c' or k.failures > 0);
      continue when not found;
    end if;
    g := gate_of('e', f.endpoint);
    perform from gate h where h.id = g.id for update;
    select * into c from circuit k where k.gate_id = g.id;
    if not found then
      insert into circuit (gate_id, changed_at) values (g.id, at) returning * into c;
    end if;
    continue when c.forced is not null or c.generation <> f.generation;
    if c.state = 'h' then
      continue when not f.probe or c.probe_job <> f.job or c.probe_claim <> f.claim;
      -- A probe is lost from the moment at which it has run too long, whether or not that was noticed before it ended.
      overdue := c.overdue_at <= at and f.what in ('success', 'neutral');
      if f.what = 'success' and not overdue then
        update circuit k set state = 'c', failures = 0, generation = k.generation + 1, opened_at = null, probe_at = null, probe_job = null,
          probe_claim = null, overdue_at = null, changed_at = at where k.gate_id = g.id;
        perform tell_gate('e', g.name, at, 'circuit_closed', f.job, '{}');
        perform wake_endpoint(g.name);
      elsif f.what = 'neutral' and not overdue then
        update circuit k set state = 'o', generation = k.generation + 1, probe_job = null, probe_claim = null, overdue_at = null, changed_at = at
        where k.gate_id = g.id;
        perform tell_gate('e', g.name, at, 'probe_neutral', f.job, '{}');
        perform wake_endpoint(g.name);
      else
        perform cool_down(g, at);
        update circuit k set last_failed_job = f.job, last_error = coalesce(nullif(f.e->'error', 'null'), k.last_error) where k.gate_id = g.id;
        perform tell_gate('e', g.name, at, case when overdue then 'probe_overdue' when f.what = 'lost' then 'probe_lost' else 'circuit_reopened' end, f.job,
          jsonb_build_object('cooldownMs', g.cooldown_ms, 'probeAt', iso(at + ms(g.cooldown_ms)), 'error', f.e->'error'));
      end if;
    elsif c.state = 'c' and f.what = 'success' then
      update circuit k set failures = 0, changed_at = at where k.gate_id = g.id;
    elsif c.state = 'c' and f.what = 'failure' then
      update circuit k set failures = k.failures + 1, last_failed_job = f.job, last_error = f.e->'error', changed_at = at
      where k.gate_id = g.id returning * into c;
      if c.failures >= g.failure_threshold then
        perform cool_down(g, at);
        update circuit k set opened_at = at where k.gate_id = g.id;
        perform tell_gate('e', g.name, at, 'circuit_opened', f.job,
          jsonb_build_object('failures', c.failures, 'cooldownMs', g.cooldown_ms, 'probeAt', iso(at + ms(g.cooldown_ms)), 'error', f.e->'error'));
      end if;
    end if;
  end loop;
end $$;

-- Takes back the slot of probes that have run too long; their attempts run on and settle their jobs, not the circuit.
-- And tells workers of endpoints whose cooldown has just ended.
create or replace function expire_probes() returns int
language plpgsql security definer set search_path from current set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := clock_now();
  k circuit;
  g gate;
  done int := 0;
begin
  for k in select * from circuit c where c.state = 'h' and c.overdue_at <= at and c.forced is null order by c.gate_id loop
    select * into g from gate h where h.id = k.gate_id for update skip locked;
    continue when not found;
    perform from circuit c where c.gate_id = g.id and c.state = 'h' and c.overdue_at <= at and c.forced is null;
    continue when not found;
    perform cool_down(g, at);
    update circuit c set last_failed_job = k.probe_job where c.gate_id = g.id;
    perform tell_gate('e', g.name, at, 'probe_overdue', k.probe_job,
      jsonb_build_object('cooldownMs', g.cooldown_ms, 'probeAt', iso(at + ms(g.cooldown_ms))));
    done := done + 1;
  end loop;
  if exists (select from sleeper) then
    perform wake_endpoint(h.name) from circuit c join gate h on h.id = c.gate_id
    where c.state = 'o' and c.probe_at between at - interval '1 second' and at;
  end if;
  return done;
end $$;
