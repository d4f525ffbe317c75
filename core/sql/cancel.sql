-- Cancel: a job that waits ends at once; a running handler is asked.

create or replace function cancel(id uuid, reason text default null, actor text default null) returns text
language plpgsql security definer set search_path from current set jit = off as $$
declare
  at timestamptz := clock_now();
  r runtime;
  said jsonb;
begin
  if actor is not null then
    perform check_name(jsonb_build_object('actor', actor), '', 'actor', 200);
  end if;
  if octet_length(reason) > 2000 then
    perform refuse('invalid_argument', 'reason must be at most 2000 bytes of UTF-8', '{"field":"reason","limit":2000}');
  end if;
  said := jsonb_strip_nulls(jsonb_build_object('reason', reason, 'actor', actor, 'at', iso(at)));
  select * into r from runtime w where w.job_id = cancel.id for update;
  if not found then
    perform from outcome o where o.job_id = cancel.id;
    return case when found then 'already_terminal' else 'not_found' end;
  end if;
  if r.state <> 'a' then
    insert into event (job_id, at, kind, attempt, data) values (r.job_id, at, 'cancel_requested', nullif(r.attempt, 0), said);
    perform end_job(r, at, 'c', 'canceled', r.uncertain, said);
    return 'canceled';
  end if;
  if r.cancel is null then
    update runtime w set cancel = said where w.job_id = r.job_id;
    insert into event (job_id, at, kind, attempt, data) values (r.job_id, at, 'cancel_requested', r.attempt, said);
  end if;
  -- The worker learns it with its next heartbeat; this makes it look at once.
  perform pg_notify(w.channel, 'c') from worker w where w.id = r.worker_id and w.channel is not null;
  return 'cancel_requested';
end $$;

create or replace function rpc_cancel(args jsonb) returns text
language plpgsql security definer set search_path from current as $$
begin
  return jsonb_build_object('result', cancel(arg_uuid(args, 'id'), arg_text(args, 'reason', 2000), arg_text(args, 'actor', 200)))::text;
end $$;
