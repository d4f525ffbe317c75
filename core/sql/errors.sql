-- Refusals by name. The order is the number: the core's error table (core/src/error.rs) is compared with it.
create or replace function error_codes() returns text[] language sql immutable parallel safe as $$
  select array['invalid_argument', 'payload_invalid', 'payload_too_large', 'policy_invalid', 'idempotency_conflict',
    'not_found', 'wrong_state', 'lease_lost', 'checkpoint_conflict', 'contract_conflict', 'contract_violation',
    'wait_timeout', 'statement_timeout', 'connection_lost', 'read_only', 'permission_denied', 'schema_missing',
    'schema_too_old', 'schema_too_new', 'closed', 'used_after_fork', 'embedded_failed', 'internal']
$$;

create or replace function refuse(code text, message text, detail jsonb default '{}') returns void
language plpgsql set search_path from current as $$
begin
  raise exception using
    errcode = 'YD' || lpad(array_position(error_codes(), code)::text, 3, '0'),
    message = message,
    detail = (jsonb_build_object('code', code) || detail)::text;
end $$;
