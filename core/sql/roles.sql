-- Rights by what somebody does. Every function runs with the owner's rights and a pinned search_path, so a role
-- needs USAGE on the schema and EXECUTE on its functions, and sees no table.
--   producer  enqueues
--   worker    everything a worker process and an operator's redrive need
--   reader    snapshots, timelines, lists, counts, and the views waiting_jobs and endpoints

create or replace function functions_for(access text) returns text[] language sql immutable as $$
  select case access
    when 'producer' then array['enqueue', 'start_run', 'rpc_start_run', 'rpc_finish_run', 'rpc_get_run', 'rpc_contracts_get', 'rpc_contracts_list']
    when 'reader' then array['rpc_get', 'rpc_timeline', 'rpc_list', 'rpc_counts', 'rpc_outcome', 'rpc_workers_list',
      'rpc_preview_policy', 'rpc_redrive_preview', 'preview_policy', 'rpc_endpoints_list', 'rpc_endpoints_get', 'rpc_queues_list', 'rpc_queues_get', 'rpc_replay_preview', 'rpc_get_run', 'rpc_contracts_get', 'rpc_contracts_list', 'waiting_rows', 'endpoint_rows']
    when 'worker' then array['enqueue', 'rpc_get', 'rpc_timeline', 'rpc_list', 'rpc_counts', 'rpc_outcome', 'rpc_workers_list',
      'rpc_preview_policy', 'rpc_redrive_preview', 'preview_policy',
      'claim', 'claim_lanes', 'claimed', 'lanes_ready', 'worker_lanes', 'complete', 'fail', 'release', 'heartbeat',
      'checkpoint_get', 'checkpoint_put', 'progress', 'promote', 'recover', 'expire', 'tick', 'prune', 'cancel', 'redrive',
      'worker_start', 'worker_seen', 'worker_stop', 'sleep', 'wake',
      'rpc_claim', 'rpc_complete', 'rpc_fail', 'rpc_release', 'rpc_heartbeat', 'rpc_checkpoint_get', 'rpc_checkpoint_put',
      'rpc_cancel', 'rpc_redrive', 'rpc_prune', 'replay', 'rpc_replay', 'rpc_replay_preview',
      'start_run', 'rpc_start_run', 'rpc_finish_run', 'rpc_get_run', 'rpc_contracts_publish', 'rpc_contracts_get', 'rpc_contracts_list',
      'rpc_endpoints_list', 'rpc_endpoints_get', 'rpc_endpoints_configure', 'rpc_endpoints_pause', 'rpc_endpoints_resume',
      'rpc_endpoints_force_open', 'rpc_endpoints_force_close', 'rpc_endpoints_reset',
      'rpc_queues_list', 'rpc_queues_get', 'rpc_queues_configure', 'rpc_queues_pause', 'rpc_queues_resume']
    end
$$;

create or replace function change_access(p_role text, access text, granting boolean) returns void
language plpgsql set search_path from current as $$
declare
  f record;
begin
  if functions_for(access) is null then
    perform refuse('invalid_argument', 'access must be worker, producer or reader', '{"field":"access"}');
  end if;
  if not exists (select from pg_roles r where r.rolname = p_role) then
    perform refuse('not_found', format('there is no role %s', p_role), '{"field":"role"}');
  end if;
  execute format(case when granting then 'grant usage on schema %I to %I' else 'revoke usage on schema %I from %I' end, current_schema, p_role);
  execute format(case when granting then 'grant select on table schema_version to %I' else 'revoke select on table schema_version from %I' end, p_role);
  if access = 'reader' then
    execute format(case when granting then 'grant select on table waiting_jobs, endpoints to %I' else 'revoke select on table waiting_jobs, endpoints from %I' end, p_role);
  end if;
  for f in
    select p.oid::regprocedure as signature from pg_proc p
    where p.pronamespace = (select n.oid from pg_namespace n where n.nspname = current_schema) and p.proname = any (functions_for(access))
  loop
    execute format(case when granting then 'grant execute on function %s to %I' else 'revoke execute on function %s from %I' end, f.signature, p_role);
  end loop;
end $$;

create or replace function rpc_grant(args jsonb) returns text language plpgsql set search_path from current as $$
begin
  perform change_access(arg_text(args, 'role', 63, true), arg_text(args, 'access', 20, true), true);
  return '{}';
end $$;

create or replace function rpc_revoke(args jsonb) returns text language plpgsql set search_path from current as $$
begin
  perform change_access(arg_text(args, 'role', 63, true), arg_text(args, 'access', 20, true), false);
  return '{}';
end $$;

