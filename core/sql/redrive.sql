-- Redrive and replay: a new job made from a terminal one, linked both ways. It starts at attempt 1 with the source's
-- definition; times, key, `after` and synthetic stay behind, checkpoints come along only if asked for.
-- Redrive takes failed jobs with their own budget. Replay takes any terminal job, with one attempt unless told
-- otherwise; inside a run the new job joins it, and so do new copies of the jobs that were skipped because of the source.

create or replace function ever_started(o outcome) returns boolean language sql stable set search_path from current as $$
  select o.attempt > 0 or exists (select from event e where e.job_id = o.job_id and e.kind = 'released' and e.data->'started' = 'true')
$$;

-- Makes the new job of one request and source, or finds the one it made before.
create or replace function repeat_job(source job, request jsonb, kind text, at timestamptz) returns uuid
language plpgsql set search_path from current as $$
declare
  made uuid := uuid7();
  earlier uuid;
begin
  perform commit_synchronously();
  insert into redrive_request (request_id, source_id, job_id, at, actor, reason)
  values (request->>'requestId', source.id, made, at, request->>'actor', request->>'reason')
  on conflict do nothing;
  if not found then
    select q.job_id into earlier from redrive_request q where q.request_id = request->>'requestId' and q.source_id = source.id;
    return earlier;
  end if;
  insert into job (id, lane_id, enqueued_at, max_attempts, payload, policy, tags, timeout_ms, effect_key, source_id, run_id, contracted)
  values (made, source.lane_id, at,
    case when kind = 'replayed' then arg_integer(request, 'maxAttempts', 1, 100, 1) else source.max_attempts end,
    source.payload, source.policy, source.tags, source.timeout_ms,
    case when not arg_boolean(request, 'newEffectKey') then coalesce(source.effect_key, source.id::text) end, source.id,
    case when kind = 'replayed' then source.run_id end, source.contracted);
  insert into runtime (job_id, lane_id, seq, state, timeout_ms, checkpoints)
  values (made, source.lane_id, nextval('position'), 'r', source.timeout_ms,
    arg_boolean(request, 'copyCheckpoints') and exists (select from checkpoint c where c.job_id = source.id));
  if arg_boolean(request, 'copyCheckpoints') then
    insert into checkpoint (job_id, name, attempt, saved_at, value)
    select made, c.name, 0, c.saved_at, c.value from checkpoint c where c.job_id = source.id;
  end if;
  insert into event (job_id, at, kind, data) values (source.id, at, kind,
    jsonb_build_object('jobId', made, 'actor', request->>'actor', 'reason', request->>'reason', 'requestId', request->>'requestId'));
  if kind = 'replayed' and source.run_id is not null then
    perform copy_skipped(source.id, made, source.run_id, at);
  end if;
  return made;
end $$;

-- New copies of the jobs that were skipped because of `source`, and because of those, waiting for the new job.
create or replace function copy_skipped(p_source uuid, p_made uuid, p_run uuid, at timestamptz) returns void
language plpgsql set search_path from current as $$
declare
  j job;
  copy uuid;
begin
  for j in
    select f.* from job f join outcome o on o.job_id = f.id
    where f.after_id = p_source and f.run_id = p_run and o.state = 'k' order by f.id
  loop
    copy := uuid7();
    insert into job (id, lane_id, enqueued_at, max_attempts, payload, policy, tags, timeout_ms, effect_key, source_id, run_id, after_id, after_on, contracted)
    values (copy, j.lane_id, at, j.max_attempts, j.payload, j.policy, j.tags, j.timeout_ms, coalesce(j.effect_key, j.id::text), j.id, p_run, p_made, j.after_on, j.contracted);
    insert into runtime (job_id, lane_id, seq, state, timeout_ms, after_id) values (copy, j.lane_id, nextval('position'), 'b', j.timeout_ms, p_made);
    insert into event (job_id, at, kind, data) values (j.id, at, 'replayed', jsonb_build_object('jobId', copy));
    perform copy_skipped(j.id, copy, p_run, at);
  end loop;
end $$;

create or replace function check_request(request jsonb, allowed text[]) returns void
language plpgsql immutable set search_path from current as $$
declare
  unknown text;
begin
  select key into unknown from jsonb_object_keys(request) key where key <> all (allowed) order by key collate "C" limit 1;
  if found then
    perform refuse('invalid_argument', 'unknown option: ' || left(unknown, 100), jsonb_build_object('field', left(unknown, 100)));
  end if;
  perform arg_text(request, 'actor', 200, true), arg_text(request, 'reason', 2000, true), arg_text(request, 'requestId', 200, true),
    arg_boolean(request, 'acknowledgeDuplicateRisk'), arg_boolean(request, 'copyCheckpoints'), arg_boolean(request, 'newEffectKey');
end $$;

-- kind: redriven or replayed. request: `{"id"} or {"filter", "limit"?, "after"?}` with actor, reason, requestId, acknowledgeDuplicateRisk?,
-- copyCheckpoints?, newEffectKey?. Returns `[{"id","sourceId"}]`. A filter is worked off page by page in the order
-- of source ids: the next page is asked for with `after`, the last source id; the same page asked twice answers the same.
create or replace function repeat_jobs(request jsonb, kind text) returns text
language plpgsql set search_path from current set jit = off as $$
declare
  at timestamptz := clock_now();
  source job;
  ended outcome;
  page int;
  answers jsonb := '[]';
  picked uuid;
  verb text := case kind when 'redriven' then 'redrive' else 'replay' end;
  filter jsonb := coalesce(request->'filter', '{}');
begin
  perform check_request(request, array['id', 'filter', 'limit', 'after', 'actor', 'reason', 'requestId',
    'acknowledgeDuplicateRisk', 'copyCheckpoints', 'newEffectKey'] || case when kind = 'replayed' then array['maxAttempts'] else '{}' end);
  if kind = 'replayed' then
    perform arg_integer(request, 'maxAttempts', 1, 100, 1);
  end if;
  if (request ? 'id') = (request ? 'filter') then
    perform refuse('invalid_argument', verb || ' needs either id or filter', '{"field":"id"}');
  end if;
  if request ? 'id' then
    select * into source from job j where j.id = arg_uuid(request, 'id');
    if not found then
      perform refuse('not_found', format('there is no job %s', request->>'id'), '{"field":"id"}');
    end if;
    select * into ended from outcome o where o.job_id = source.id;
    if source.synthetic then
      perform refuse('wrong_state', format('job %s is a synthetic test: it is never repeated as production', source.id), '{"field":"id"}');
    end if;
    if kind = 'redriven' and ended.state is distinct from 'f' then
      perform refuse('wrong_state', format('job %s has not failed: only a failed job can be redriven', source.id), '{"field":"id"}');
    elsif ended.job_id is null then
      perform refuse('wrong_state', format('job %s has not ended: only a terminal job can be replayed', source.id), '{"field":"id"}');
    end if;
  end if;
  perform check_filter(filter);
  page := arg_integer(request, 'limit', 1, 1000, 1000);
  for picked in
    select source.id where request ? 'id'
    union all
    select p.id from (
      select o.job_id as id from outcome o
      where request ? 'filter' and case when kind = 'redriven' then o.state = 'f' else true end
        and (not filter ? 'state' or outcome_state(o.state) = filter->>'state') and not exists (select from lane l where l.id = o.lane_id and l.synthetic)
        and (not request ? 'after' or o.job_id > arg_uuid(request, 'after'))
        and matches_filter(o.job_id, o.lane_id, o.uncertain, filter)
        and not exists (select from redrive_request q where q.source_id = o.job_id and q.request_id <> request->>'requestId')
        -- What this request has made is not its own source, however soon it failed again.
        and not exists (select from redrive_request q where q.job_id = o.job_id and q.request_id = request->>'requestId')
      order by o.job_id
      limit page) p
  loop
    select * into strict source from job j where j.id = picked;
    select * into strict ended from outcome o where o.job_id = picked;
    if not arg_boolean(request, 'acknowledgeDuplicateRisk') and ever_started(ended)
       and exists (select from lane l where l.id = source.lane_id and l.endpoint is not null) then
      perform refuse('invalid_argument', format('an attempt of job %s has started and may have reached its endpoint: '
        'acknowledgeDuplicateRisk must be true', picked), jsonb_build_object('field', 'acknowledgeDuplicateRisk', 'id', picked));
    end if;
    answers := answers || jsonb_build_object('id', repeat_job(source, request, kind, at), 'sourceId', picked);
  end loop;
  if answers <> '[]' and exists (select from sleeper) then
    perform wake_sleepers(array_agg(distinct l.queue), array_agg(distinct l.type))
    from jsonb_array_elements(answers) a join job j on j.id = (a->>'id')::uuid join lane l on l.id = j.lane_id;
  end if;
  return answers::text;
end $$;

create or replace function redrive(request jsonb) returns text
language sql security definer set search_path from current as $$ select repeat_jobs(request, 'redriven') $$;
create or replace function replay(request jsonb) returns text
language sql security definer set search_path from current as $$ select repeat_jobs(request, 'replayed') $$;
create or replace function rpc_redrive(args jsonb) returns text
language sql security definer set search_path from current as 'select redrive(args)';
create or replace function rpc_replay(args jsonb) returns text
language sql security definer set search_path from current as 'select replay(args)';

-- How many jobs a redrive or replay by this filter would make, and what they risk.
create or replace function preview_repeat(args jsonb, kind text) returns text
language plpgsql stable set search_path from current set jit = off as $$
declare
  filter jsonb := coalesce(args->'filter', '{}');
begin
  perform check_filter(filter);
  return (
    select jsonb_build_object(
      'count', count(*),
      'withEndpoint', count(*) filter (where ever_started(o) and exists (select from lane l where l.id = o.lane_id and l.endpoint is not null)),
      'uncertain', count(*) filter (where o.uncertain))::text
    from outcome o
    where case when kind = 'redriven' then o.state = 'f' else true end and (not filter ? 'state' or outcome_state(o.state) = filter->>'state')
      and not exists (select from lane l where l.id = o.lane_id and l.synthetic)
      and matches_filter(o.job_id, o.lane_id, o.uncertain, filter)
      and not exists (select from redrive_request q where q.source_id = o.job_id));
end $$;

create or replace function rpc_redrive_preview(args jsonb) returns text
language sql stable security definer set search_path from current as $$ select preview_repeat(args, 'redriven') $$;

-- What a replay would run, and what speaks against it: of one job by `id`, or how many by `filter`.
create or replace function rpc_replay_preview(args jsonb) returns text
language plpgsql stable security definer set search_path from current set jit = off as $$
declare
  j job;
  l lane;
  o outcome;
  c circuit;
begin
  if args ? 'filter' then
    return preview_repeat(args, 'replayed');
  end if;
  select * into j from job where id = arg_uuid(args, 'id');
  if not found then
    perform refuse('not_found', format('there is no job %s', args->>'id'), '{"field":"id"}');
  end if;
  l := lane_row(j.lane_id);
  select * into o from outcome where job_id = j.id;
  select k.* into c from gate g join circuit k on k.gate_id = g.id where g.kind = 'e' and g.name = l.endpoint;
  return (jsonb_build_object(
    'id', j.id, 'state', coalesce(outcome_state(o.state), (select live_state(r.state) from runtime r where r.job_id = j.id)),
    'replayable', o.job_id is not null and not j.synthetic,
    'wouldRun', jsonb_build_object('type', l.type, 'version', l.version, 'queue', l.queue, 'endpoint', l.endpoint, 'maxAttempts', 1,
      'hasPayload', j.payload is not null, 'idempotencyKey', coalesce(j.effect_key, j.id::text)),
    'risks', jsonb_build_object(
      'started', o.job_id is not null and ever_started(o),
      'uncertain', coalesce(o.uncertain, false),
      'acknowledgementNeeded', o.job_id is not null and ever_started(o) and l.endpoint is not null,
      'checkpoints', coalesce((select jsonb_agg(k.name order by k.name) from checkpoint k where k.job_id = j.id), '[]'),
      'repeatedBefore', coalesce((select jsonb_agg(x.id order by x.id) from job x where x.source_id = j.id), '[]'),
      'circuit', case when l.endpoint is not null then circuit_state(c) end))
    || jsonb_build_object('payload', j.payload::jsonb))::text;
end $$;
