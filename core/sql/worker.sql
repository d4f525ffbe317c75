-- Workers: registration, signs of life, and the announcement that one sleeps.

create or replace function worker_start(info jsonb) returns int
language plpgsql security definer set search_path from current as $$
declare
  started int;
  at timestamptz := clock_now();
begin
  insert into worker (name, host, pid, language, queues, types, versions, slots, started_at, seen_at)
  values (arg_text(info, 'name', 200, true), info->>'host', (info->>'pid')::int, info->>'language',
    array(select jsonb_array_elements_text(info->'queues')),
    array(select h->>'type' from jsonb_array_elements(info->'handlers') with ordinality x (h, n) order by n),
    array(select coalesce(h->>'version', '1') from jsonb_array_elements(info->'handlers') with ordinality x (h, n) order by n),
    (info->>'slots')::int, at, at)
  returning id into started;
  return started;
end $$;

create or replace function worker_seen(p_worker int, p_running int) returns void
language sql security definer set search_path from current as $$
  update worker set seen_at = clock_now(), running = p_running where id = p_worker;
$$;

create or replace function worker_stop(p_worker int) returns void
language sql security definer set search_path from current as $$
  delete from sleeper where worker_id = p_worker;
  update worker set stopped_at = clock_now(), running = 0 where id = p_worker;
$$;

create or replace function sleep(p_worker int, p_channel text, p_queues text[], p_types text[], p_for_ms bigint) returns void
language plpgsql security definer set search_path from current as $$
begin
  insert into sleeper as s (worker_id, channel, queues, types, until)
  values (p_worker, p_channel, p_queues, p_types, clock_now() + ms(p_for_ms))
  on conflict (worker_id) do update set channel = excluded.channel, queues = excluded.queues, types = excluded.types, until = excluded.until;
  update worker w set channel = p_channel where w.id = p_worker and w.channel is distinct from p_channel;
end $$;

create or replace function wake(p_worker int) returns void
language sql security definer set search_path from current as $$
  delete from sleeper where worker_id = p_worker;
$$;

create or replace function rpc_workers_list(args jsonb) returns text
language sql stable security definer set search_path from current as $$
  select coalesce(jsonb_agg(jsonb_build_object('id', w.id, 'name', w.name, 'host', w.host, 'pid', w.pid, 'language', w.language,
      'queues', w.queues, 'handlers', (select jsonb_agg(jsonb_build_object('type', h.type, 'version', h.version))
        from unnest(w.types, w.versions) h (type, version)),
      'slots', w.slots, 'running', w.running, 'startedAt', iso(w.started_at), 'seenAt', iso(w.seen_at)) order by w.id), '[]')::text
  from worker w where w.stopped_at is null and w.seen_at > clock_now() - interval '60 seconds'
$$;
