-- The low-level loop as control verbs: claim, complete, fail, release, heartbeat, checkpoints.

create or replace function rpc_claim(args jsonb) returns text
language plpgsql security definer set search_path from current as $$
declare
  claims jsonb;
begin
  if args ? 'queues' and jsonb_typeof(args->'queues') <> 'array' then
    perform refuse('invalid_argument', 'queues must be names of 1 to 200 bytes', '{"field":"queues"}');
  end if;
  select jsonb_agg(jsonb_strip_nulls(jsonb_build_object('id', c.id, 'fence', c.fence, 'queue', c.queue, 'type', c.type,
      'version', c.version, 'attempt', c.attempt, 'maxAttempts', c.max_attempts, 'priority', c.priority,
      'endpoint', c.endpoint, 'hasPayload', c.has_payload, 'deadline', iso(c.deadline), 'timeoutMs', c.timeout_ms,
      'leaseUntil', iso(c.lease_until), 'idempotencyKey', c.idempotency_key, 'runId', c.run_id, 'synthetic', c.synthetic))
    || jsonb_build_object('tags', coalesce(to_jsonb(c.tags), '[]'))
    || case when c.has_payload then jsonb_build_object('payload', c.payload) else '{}' end)
  into claims
  from claim(
    case when args ? 'queues' then array(select jsonb_array_elements_text(args->'queues')) else array['default'] end,
    args->'handlers',
    arg_integer(args, 'limit', 1, 1000, 1)::int,
    arg_integer(args, 'leaseMs', 100, 86400000, 30000),
    case when args ? 'claimId' then arg_uuid(args, 'claimId') else gen_random_uuid() end) c;
  return coalesce(claims, '[]')::text;
end $$;

create or replace function refuse_lost(code int) returns void language plpgsql immutable set search_path from current as $$
begin
  if code = 2 then
    perform refuse('lease_lost', 'the claim is no longer current: its attempt was settled, recovered or claimed again');
  end if;
end $$;

create or replace function rpc_complete(args jsonb) returns text
language plpgsql security definer set search_path from current as $$
declare
  c record;
  code int2;
begin
  select * into c from arg_claim(args->'claim');
  if args ? 'result' and nested_too_deep(args->'result') then
    perform refuse('payload_invalid', 'result: nesting over 100', '{"path":"result","limit":100}');
  end if;
  code := coalesce((complete(array[c.job_id], array[c.claim_id], array[c.claim_no], array[(args->'result')::text]))[1], 0);
  perform refuse_lost(code);
  if code <> 3 then
    return '{"state":"succeeded"}';
  end if;
  return (select jsonb_build_object('state', outcome_state(o.state), 'reason', o.reason) from outcome o where o.job_id = c.job_id)::text;
end $$;

create or replace function rpc_fail(args jsonb) returns text
language plpgsql security definer set search_path from current as $$
declare
  c record;
  answer jsonb;
begin
  select * into c from arg_claim(args->'claim');
  if args - array['claim', 'error', 'delayMs', 'retryable', 'retryAfterMs', 'uncertain'] <> '{}' then
    perform refuse('invalid_argument', 'unknown option: ' || (select left(k, 100) from jsonb_object_keys(
      args - array['claim', 'error', 'delayMs', 'retryable', 'retryAfterMs', 'uncertain']) k order by k limit 1), '{"field":"fail"}');
  end if;
  if args ? 'error' and jsonb_typeof(args->'error') <> 'object' then
    perform refuse('invalid_argument', 'error must be an object with name and message', '{"field":"error"}');
  end if;
  perform check_integer(args, '', 'delayMs', 0, 31536000000);
  answer := fail(jsonb_build_array(jsonb_build_object('id', c.job_id, 'claim', c.claim_id, 'number', c.claim_no, 'error', '{}'::jsonb)
    || (args - 'claim')
    || jsonb_build_object('retryable', coalesce(args->'retryable', 'null') = 'null' or arg_boolean(args, 'retryable'), 'uncertain', arg_boolean(args, 'uncertain'))))::jsonb->0;
  if answer ? 'error' then
    perform refuse_lost(2);
  end if;
  return jsonb_strip_nulls(answer)::text;
end $$;

create or replace function rpc_release(args jsonb) returns text
language plpgsql security definer set search_path from current as $$
declare
  c record;
begin
  select * into c from arg_claim(args->'claim');
  perform refuse_lost(coalesce((release(array[c.job_id], array[c.claim_id], array[c.claim_no], coalesce(arg_text(args, 'reason', 2000), 'released')))[1], 0));
  return '{}';
end $$;

create or replace function rpc_heartbeat(args jsonb) returns text
language plpgsql security definer set search_path from current as $$
declare
  codes int2[];
begin
  if jsonb_typeof(args->'claims') is distinct from 'array' then
    perform refuse('invalid_argument', 'claims must be an array of claims', '{"field":"claims"}');
  end if;
  select heartbeat(array_agg(c.job_id order by x.n), array_agg(c.claim_id order by x.n), array_agg(c.claim_no order by x.n),
    arg_integer(args, 'leaseMs', 100, 86400000, 30000)) into codes
  from jsonb_array_elements(args->'claims') with ordinality x (e, n) cross join lateral arg_claim(x.e) c;
  return coalesce((select jsonb_agg((array['accepted', 'cancel_requested', 'lease_lost'])[code + 1] order by n)
    from unnest(codes) with ordinality u (code, n)), '[]')::text;
end $$;

create or replace function rpc_checkpoint_get(args jsonb) returns text
language plpgsql security definer set search_path from current as $$
declare
  c record;
  held text;
begin
  select * into c from arg_claim(args->'claim');
  held := checkpoint_get(c.job_id, c.claim_id, c.claim_no, arg_text(args, 'name', 200, true));
  return case when held is null then '{"found":false}' else format('{"found":true,"value":%s}', held) end;
end $$;

create or replace function rpc_checkpoint_put(args jsonb) returns text
language plpgsql security definer set search_path from current as $$
declare
  c record;
begin
  select * into c from arg_claim(args->'claim');
  perform checkpoint_put(c.job_id, c.claim_id, c.claim_no, arg_text(args, 'name', 200, true), coalesce(args->'value', 'null')::text);
  return '{}';
end $$;
