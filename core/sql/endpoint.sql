-- Endpoints and queues as operators see and set them. Every act names its actor and is kept in gate_event.

create or replace function gate_actor(args jsonb) returns jsonb language sql immutable set search_path from current as $$
  select jsonb_build_object('actor', arg_text(args, 'actor', 200, true), 'reason', arg_text(args, 'reason', 2000))
$$;

create or replace function check_keys(args jsonb, allowed text[], prefix text) returns void
language plpgsql immutable set search_path from current as $$
declare
  unknown text;
begin
  if jsonb_typeof(args) is distinct from 'object' then
    perform refuse('invalid_argument', rtrim(prefix, '.') || ' must be an object', jsonb_build_object('field', rtrim(prefix, '.')));
  end if;
  select key into unknown from jsonb_object_keys(args) key where key <> all (allowed) order by key collate "C" limit 1;
  if found then
    perform refuse('invalid_argument', 'unknown option: ' || prefix || left(unknown, 100), jsonb_build_object('field', prefix || left(unknown, 100)));
  end if;
end $$;

create or replace function required_integer(args jsonb, prefix text, field text, low bigint, high bigint) returns bigint
language plpgsql immutable set search_path from current as $$
begin
  if not args ? field then
    perform refuse('invalid_argument', prefix || field || ' is missing', jsonb_build_object('field', prefix || field));
  end if;
  perform check_integer(args, prefix, field, low, high);
  return (args->>field)::numeric::bigint;
end $$;

-- Sets what is named and leaves the rest; null removes a limit or policy. A running cooldown keeps its end.
create or replace function configure_gate(p_kind "char", args jsonb) returns void
language plpgsql set search_path from current as $$
declare
  at timestamptz := clock_now();
  said jsonb := gate_actor(args);
  g gate;
  rate_set jsonb := args->'rateLimit';
  circuit_set jsonb := args->'circuit';
  n bigint;
  kept numeric;
begin
  perform check_keys(args, case when p_kind = 'e'
    then array['name', 'rateLimit', 'maxConcurrency', 'retryPolicy', 'circuit', 'actor', 'reason']
    else array['name', 'rateLimit', 'maxConcurrency', 'actor', 'reason'] end, '');
  perform arg_text(args, 'name', 200, true);
  if args ? 'rateLimit' and rate_set <> 'null' then
    perform check_keys(rate_set, array['limit', 'intervalMs', 'burst'], 'rateLimit.');
    n := required_integer(rate_set, 'rateLimit.', 'limit', 1, 1000000);
    perform required_integer(rate_set, 'rateLimit.', 'intervalMs', 1, 86400000);
    perform check_integer(rate_set, 'rateLimit.', 'burst', 1, n);
  end if;
  if args ? 'maxConcurrency' and args->'maxConcurrency' <> 'null' then
    perform check_integer(args, '', 'maxConcurrency', 1, 100000);
  end if;
  if args ? 'circuit' then
    perform check_keys(circuit_set, array['failureThreshold', 'cooldownMs', 'probeTimeoutMs'], 'circuit.');
    perform check_integer(circuit_set, 'circuit.', 'failureThreshold', 1, 1000), check_integer(circuit_set, 'circuit.', 'cooldownMs', 1, 86400000),
      check_integer(circuit_set, 'circuit.', 'probeTimeoutMs', 1000, 86400000);
  end if;
  if args ? 'retryPolicy' and args->'retryPolicy' <> 'null' then
    perform normalize_endpoint_policy(args->'retryPolicy', 'retryPolicy');
  end if;
  g := gate_of(p_kind, args->>'name');
  perform from gate h where h.id = g.id for update;
  select * into g from gate h where h.id = g.id;
  kept := tokens_kept(g, at);
  update gate h set
    rate_limit = case when args ? 'rateLimit' then (rate_set->>'limit')::numeric::int else h.rate_limit end,
    rate_interval_ms = case when args ? 'rateLimit' then (rate_set->>'intervalMs')::numeric::bigint else h.rate_interval_ms end,
    rate_burst = case when args ? 'rateLimit' then coalesce(rate_set->>'burst', rate_set->>'limit')::numeric::int else h.rate_burst end,
    max_concurrency = case when args ? 'maxConcurrency' then (args->>'maxConcurrency')::numeric::int else h.max_concurrency end,
    policy = case when args ? 'retryPolicy' then case when args->'retryPolicy' <> 'null' then normalize_endpoint_policy(args->'retryPolicy', 'retryPolicy') end else h.policy end,
    failure_threshold = coalesce((circuit_set->>'failureThreshold')::numeric::int, h.failure_threshold),
    cooldown_ms = coalesce((circuit_set->>'cooldownMs')::numeric::bigint, h.cooldown_ms),
    probe_timeout_ms = coalesce((circuit_set->>'probeTimeoutMs')::numeric::bigint, h.probe_timeout_ms)
  where h.id = g.id returning * into g;
  if args ? 'rateLimit' then
    perform refill(g, kept, at);
  end if;
  -- Attempts that already run count against a limit that is set now.
  if args ? 'maxConcurrency' then
    if p_kind = 'e' then
      update runtime r set endpoint_slot = case when g.max_concurrency is not null then g.id end from lane l
      where r.state = 'a' and l.id = r.lane_id and l.endpoint = g.name;
    else
      update runtime r set queue_slot = case when g.max_concurrency is not null then g.id end from lane l
      where r.state = 'a' and l.id = r.lane_id and l.queue = g.name;
    end if;
  end if;
  perform tell_gate(p_kind, g.name, at, 'configured', null, jsonb_strip_nulls(said) || (args - array['name', 'actor', 'reason']));
  perform wake_gate(g);
end $$;

create or replace function wake_gate(g gate) returns void language plpgsql set search_path from current as $$
begin
  if exists (select from sleeper) then
    perform wake_sleepers(array_agg(distinct l.queue), array_agg(distinct l.type)) from lane l
    where case when g.kind = 'e' then l.endpoint = g.name else l.queue = g.name end;
  end if;
end $$;

create or replace function pause_gate(p_kind "char", args jsonb, pausing boolean) returns void
language plpgsql set search_path from current as $$
declare
  at timestamptz := clock_now();
  said jsonb := gate_actor(args);
  g gate;
begin
  perform check_keys(args, array['name', 'actor', 'reason'], '');
  perform arg_text(args, 'name', 200, true);
  g := gate_of(p_kind, args->>'name');
  update gate h set paused = case when pausing then jsonb_strip_nulls(said || jsonb_build_object('at', iso(at))) end
  where h.id = g.id and (h.paused is null) = pausing;
  if found then
    perform tell_gate(p_kind, g.name, at, case when pausing then 'paused' else 'resumed' end, null, said);
    perform wake_gate(g);
  end if;
end $$;

create or replace function force_circuit(args jsonb, p_forced "char") returns void
language plpgsql set search_path from current as $$
declare
  at timestamptz := clock_now();
  said jsonb := gate_actor(args);
  g gate;
begin
  perform check_keys(args, array['name', 'actor', 'reason'], '');
  perform arg_text(args, 'name', 200, true);
  g := gate_of('e', args->>'name');
  perform from gate h where h.id = g.id for update;
  -- Claims of a circuit that had no row yet are of generation 0.
  insert into circuit as c (gate_id, forced, generation, changed_at) values (g.id, p_forced, 1, at)
  on conflict (gate_id) do update set
    forced = excluded.forced,
    generation = c.generation + 1,
    -- A reset begins anew; a force keeps what the circuit knew, for the display.
    state = case when excluded.forced is null then 'c' when c.state = 'h' then 'o' else c.state end,
    failures = case when excluded.forced is null then 0 else c.failures end,
    opened_at = case when excluded.forced is null then null else c.opened_at end,
    probe_at = case when excluded.forced is null then null else c.probe_at end,
    probe_job = null, probe_claim = null, overdue_at = null, changed_at = at;
  perform tell_gate('e', g.name, at, case when p_forced is null then 'circuit_reset' else 'circuit_forced' end, null,
    said || jsonb_build_object('forced', case p_forced when 'o' then 'open' when 'c' then 'closed' end));
  perform wake_gate(g);
end $$;

create or replace function circuit_state(c circuit) returns text language sql immutable parallel safe as $$
  select case coalesce(c.forced, c.state) when 'o' then 'open' when 'h' then 'half_open' else 'closed' end
$$;

create or replace function gate_snapshot(p_kind "char", p_name text) returns jsonb
language plpgsql stable set search_path from current set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := clock_now();
  g gate;
  c circuit;
  waiting bigint;
  running bigint;
begin
  select * into g from gate h where h.kind = p_kind and h.name = p_name;
  select * into c from circuit k where k.gate_id = g.id;
  select count(*) into waiting from (
    select from lane l join runtime r on r.lane_id = l.id and r.state = 'r'
    where case when p_kind = 'e' then l.endpoint = p_name else l.queue = p_name end limit 100000) x;
  select count(*) into running from runtime r where r.state = 'a' and exists (
    select from lane l where l.id = r.lane_id and case when p_kind = 'e' then l.endpoint = p_name else l.queue = p_name end);
  return jsonb_build_object(
      'name', p_name,
      'paused', g.paused,
      'rateLimit', case when g.rate_limit is not null then jsonb_build_object('limit', g.rate_limit, 'intervalMs', g.rate_interval_ms, 'burst', g.rate_burst) end,
      'tokensLeft', case when g.rate_limit is not null then tokens_left(g, at) end,
      'maxConcurrency', g.max_concurrency,
      'slotsUsed', case when g.max_concurrency is not null then slots_used(g, at) end,
      'running', running, 'waiting', waiting)
    || case when p_kind = 'q' then '{}' else jsonb_build_object(
      'retryPolicy', g.policy,
      'circuit', jsonb_build_object(
        'state', circuit_state(c), 'forced', case c.forced when 'o' then 'open' when 'c' then 'closed' end,
        'failures', coalesce(c.failures, 0), 'generation', coalesce(c.generation, 0),
        'since', iso(c.changed_at), 'openedAt', iso(c.opened_at), 'probeAt', iso(c.probe_at), 'probeJob', c.probe_job, 'overdueAt', iso(c.overdue_at),
        'lastFailedJob', c.last_failed_job, 'lastError', c.last_error,
        'failureThreshold', coalesce(g.failure_threshold, 5), 'cooldownMs', coalesce(g.cooldown_ms, 60000), 'probeTimeoutMs', coalesce(g.probe_timeout_ms, 900000))) end;
end $$;

create or replace function gate_names(p_kind "char") returns setof text language sql stable set search_path from current as $$
  select name from gate where kind = p_kind
  union
  select case when p_kind = 'e' then endpoint else queue end from lane where p_kind = 'q' or endpoint is not null
$$;

create or replace function gate_list(p_kind "char", args jsonb) returns text language plpgsql stable set search_path from current as $$
declare
  size int := arg_integer(args, 'limit', 1, 1000, 200);
begin
  return (select coalesce(jsonb_agg(gate_snapshot(p_kind, n.name) order by n.name collate "C"), '[]') from (
    select name from gate_names(p_kind) name where not args ? 'after' or name collate "C" > args->>'after' order by name collate "C" limit size) n)::text;
end $$;

create or replace function gate_get(p_kind "char", args jsonb) returns text language plpgsql stable set search_path from current as $$
declare
  wanted text := arg_text(args, 'name', 200, true);
begin
  if not exists (select from gate_names(p_kind) name where name = wanted) then
    return 'null';
  end if;
  return (gate_snapshot(p_kind, wanted) || jsonb_build_object('events', coalesce((
    select jsonb_agg(jsonb_build_object('event', e.event, 'at', iso(e.at), 'jobId', e.job_id) || e.data order by e.id)
    from (select * from gate_event x where x.kind = p_kind and x.name = wanted order by x.id desc limit 100) e), '[]')))::text;
end $$;

create or replace function rpc_endpoints_list(args jsonb) returns text language sql stable security definer set search_path from current as $$ select gate_list('e', args) $$;
create or replace function rpc_endpoints_get(args jsonb) returns text language sql stable security definer set search_path from current as $$ select gate_get('e', args) $$;
create or replace function rpc_queues_list(args jsonb) returns text language sql stable security definer set search_path from current as $$ select gate_list('q', args) $$;
create or replace function rpc_queues_get(args jsonb) returns text language sql stable security definer set search_path from current as $$ select gate_get('q', args) $$;

create or replace function rpc_endpoints_configure(args jsonb) returns text language plpgsql security definer set search_path from current as $$
begin
  perform configure_gate('e', args);
  return gate_snapshot('e', args->>'name')::text;
end $$;
create or replace function rpc_endpoints_pause(args jsonb) returns text language plpgsql security definer set search_path from current as $$
begin
  perform pause_gate('e', args, true);
  return gate_snapshot('e', args->>'name')::text;
end $$;
create or replace function rpc_endpoints_resume(args jsonb) returns text language plpgsql security definer set search_path from current as $$
begin
  perform pause_gate('e', args, false);
  return gate_snapshot('e', args->>'name')::text;
end $$;
create or replace function rpc_endpoints_force_open(args jsonb) returns text language plpgsql security definer set search_path from current as $$
begin
  perform force_circuit(args, 'o');
  return gate_snapshot('e', args->>'name')::text;
end $$;
create or replace function rpc_endpoints_force_close(args jsonb) returns text language plpgsql security definer set search_path from current as $$
begin
  perform force_circuit(args, 'c');
  return gate_snapshot('e', args->>'name')::text;
end $$;
create or replace function rpc_endpoints_reset(args jsonb) returns text language plpgsql security definer set search_path from current as $$
begin
  perform force_circuit(args, null);
  return gate_snapshot('e', args->>'name')::text;
end $$;
create or replace function rpc_queues_configure(args jsonb) returns text language plpgsql security definer set search_path from current as $$
begin
  perform configure_gate('q', args);
  return gate_snapshot('q', args->>'name')::text;
end $$;
create or replace function rpc_queues_pause(args jsonb) returns text language plpgsql security definer set search_path from current as $$
begin
  perform pause_gate('q', args, true);
  return gate_snapshot('q', args->>'name')::text;
end $$;
create or replace function rpc_queues_resume(args jsonb) returns text language plpgsql security definer set search_path from current as $$
begin
  perform pause_gate('q', args, false);
  return gate_snapshot('q', args->>'name')::text;
end $$;
