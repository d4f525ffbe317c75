-- Gates at the claim: what is free, what is held back, and what a locked gate still has to give.

-- The row of a gate, made with defaults if it is not there yet.
create or replace function gate_of(p_kind "char", p_name text) returns gate
language plpgsql set search_path from current as $$
declare
  found_gate gate;
begin
  select * into found_gate from gate g where g.kind = p_kind and g.name = p_name;
  if not found then
    insert into gate (kind, name) values (p_kind, p_name) on conflict do nothing;
    select * into found_gate from gate g where g.kind = p_kind and g.name = p_name;
  end if;
  return found_gate;
end $$;

create or replace function tell_gate(p_kind "char", p_name text, at timestamptz, event text, p_job uuid, data jsonb) returns void
language sql set search_path from current as $$
  -- In a setting, null is what was said: the limit was removed.
  insert into gate_event (kind, name, at, event, job_id, data)
  values (p_kind, p_name, at, event, p_job, case when event = 'configured' then data else jsonb_strip_nulls(data) end);
$$;

-- The time one token of a gate's rate stands for, in microseconds.
create or replace function token_us(g gate) returns numeric language sql immutable parallel safe as $$
  select g.rate_interval_ms * 1000.0 / g.rate_limit
$$;

create or replace function epoch_us(t timestamptz) returns numeric language sql immutable parallel safe as $$
  select trunc(extract(epoch from t) * 1000000)
$$;

-- What the bucket holds, with the part of the next token that has come; null without a rate. It starts full and holds at
-- most `burst`.
create or replace function tokens_kept(g gate, at timestamptz) returns numeric
language sql stable set search_path from current as $$
  select case when g.rate_limit is not null
    then greatest(0, g.rate_burst - greatest(0, coalesce((select r.full_at_us from rate r where r.gate_id = g.id), 0) - epoch_us(at)) / token_us(g)) end
$$;

-- How many tokens may be taken.
create or replace function tokens_left(g gate, at timestamptz) returns int
language sql stable set search_path from current as $$
  select case when g.rate_limit is null then 2147483647 else floor(tokens_kept(g, at))::int end
$$;

-- Takes tokens, never to be given back. Rounded against the taker, so that no window admits more than it may.
create or replace function take_tokens(g gate, tokens int, at timestamptz) returns void
language sql set search_path from current as $$
  insert into rate as r (gate_id, full_at_us)
  select g.id, (epoch_us(at) + ceil(tokens * token_us(g)))::bigint where g.rate_limit is not null
  on conflict (gate_id) do update set full_at_us = (greatest(r.full_at_us, epoch_us(at)) + ceil(tokens * token_us(g)))::bigint;
$$;

-- Another rate goes on with the tokens that were there, as far as the new bucket holds them; a first one starts full.
create or replace function refill(g gate, kept numeric, at timestamptz) returns void
language sql set search_path from current as $$
  delete from rate r where r.gate_id = g.id;
  insert into rate (gate_id, full_at_us)
  select g.id, (epoch_us(at) + ceil((g.rate_burst - least(kept, g.rate_burst)) * token_us(g)))::bigint
  where g.rate_limit is not null and kept is not null;
$$;

-- Slots in use are the live leases: a dead worker's slot is free at its lease's end.
create or replace function slots_used(g gate, at timestamptz) returns int
language plpgsql stable set search_path from current set enable_seqscan = off set jit = off as $$
begin
  if g.kind = 'e' then
    return (select count(*) from runtime r where r.endpoint_slot = g.id and r.state = 'a' and coalesce(r.lease_until, r.wake_at) > at);
  end if;
  return (select count(*) from runtime r where r.queue_slot = g.id and r.state = 'a' and coalesce(r.lease_until, r.wake_at) > at);
end $$;

create or replace function is_limited(g gate) returns boolean language sql immutable parallel safe as $$
  select g.rate_limit is not null or g.max_concurrency is not null
$$;

-- Whether a circuit admits nothing but synthetic tests at this moment.
create or replace function circuit_holds(c circuit, at timestamptz) returns boolean language sql immutable parallel safe as $$
  select case
    when c.gate_id is null or c.forced = 'c' then false
    when c.forced = 'o' then true
    when c.state = 'o' then c.probe_at > at
    else c.state = 'h' end
$$;

-- What each lane meets: free (nothing to take), gated (a gate must be locked and asked), blocked. A probing lane has
-- nothing but the probe of its circuit to take.
create or replace function lane_verdicts(p_lanes bigint[], at timestamptz)
returns table (place int, lane_id bigint, verdict text, endpoint text, synthetic boolean, queue_gate int, endpoint_gate int, generation int,
  probing boolean)
language plpgsql stable set search_path from current
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
begin
  return query
  select u.place::int, u.lane_id,
    case
      when q.paused is not null or e.paused is not null or (not l.synthetic and circuit_holds(c, at)) then 'blocked'
      when is_limited(q) or is_limited(e) or (not l.synthetic and c.state = 'o' and c.forced is null) then 'gated'
      else 'free'
    end,
    l.endpoint, l.synthetic,
    case when is_limited(q) then q.id end,
    case when is_limited(e) or (not l.synthetic and c.state <> 'c' and c.forced is null) then e.id end,
    c.generation,
    (not l.synthetic and c.state = 'o' and c.forced is null) is true
  from unnest(p_lanes) with ordinality u (lane_id, place)
  cross join lateral (select * from lane x where x.id = u.lane_id limit 1) l
  left join gate q on q.kind = 'q' and q.name = l.queue
  left join gate e on e.kind = 'e' and e.name = l.endpoint
  left join circuit c on c.gate_id = e.id;
end $$;
