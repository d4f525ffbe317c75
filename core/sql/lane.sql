-- Interning: from the names that decide where a job waits to its lane.

create or replace function lane_hash(queue text, type text, version text, endpoint text, priority int2, synthetic boolean, salt bigint)
returns bigint language sql immutable parallel safe as $$
  select hashtextextended(
    concat_ws(E'\x01', queue, type, version, priority::text, case when endpoint is null then '-' else '+' || endpoint end, synthetic::text), salt)
$$;

-- The id of a lane that the fast look-up of enqueue did not find: new, or moved on by a collision.
create or replace function intern_lane(p_queue text, p_type text, p_version text, p_endpoint text, p_priority int2, p_synthetic boolean)
returns bigint language plpgsql set search_path from current as $$
declare
  salt bigint := 0;
  hash bigint;
  found_other boolean;
begin
  loop
    hash := lane_hash(p_queue, p_type, p_version, p_endpoint, p_priority, p_synthetic, salt);
    perform from lane l where l.id = hash and l.queue = p_queue and l.type = p_type and l.version = p_version
      and l.endpoint is not distinct from p_endpoint and l.priority = p_priority and l.synthetic = p_synthetic;
    if found then
      return hash;
    end if;
    select exists (select from lane l where l.id = hash) into found_other;
    if not found_other then
      insert into lane (id, queue, type, version, endpoint, priority, synthetic)
      values (hash, p_queue, p_type, p_version, p_endpoint, p_priority, p_synthetic);
      return hash;
    end if;
    salt := salt + 1;
  end loop;
end $$;

-- One row per lane a worker can serve; concurrent first uses may have left several equal ones.
create or replace function worker_lanes(p_queues text[], p_types text[], p_versions text[])
returns table (lane_id bigint, queue text, type text, version text, endpoint text, priority int2)
language sql stable security definer set search_path from current as $$
  select distinct l.id, l.queue, l.type, l.version, l.endpoint, l.priority
  from unnest(p_queues) q (queue)
  cross join unnest(p_types, p_versions) h (type, version)
  join lane l on l.queue = q.queue and l.type = h.type and l.version = h.version
$$;
