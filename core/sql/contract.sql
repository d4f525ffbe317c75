-- Publishing and reading contracts. JSON Schemas are compiled and applied by the core, which is the one validator;
-- here they are data. Every publication counts up settings.contracts_version: a client tells at enqueue which version
-- it validated against, and is answered `contractStale` when that is an old one.

create or replace function contract_json(c contract) returns jsonb language sql stable set search_path from current as $$
  select jsonb_build_object('type', c.type, 'version', c.version, 'digest', c.digest, 'publishedAt', iso(c.published_at), 'actor', c.actor,
    'endpoint', c.endpoint, 'inputSchema', c.input_schema, 'outputSchema', c.output_schema, 'retryPolicy', c.retry_policy,
    'maxAttempts', c.max_attempts, 'timeoutMs', c.timeout_ms)
$$;

create or replace function rpc_contracts_publish(args jsonb) returns text
language plpgsql security definer set search_path from current as $$
declare
  at timestamptz := clock_now();
  wanted contract;
  held contract;
  fields jsonb;
  part record;
begin
  perform check_keys(args, array['type', 'version', 'endpoint', 'inputSchema', 'outputSchema', 'retryPolicy', 'maxAttempts', 'timeoutMs', 'actor'], '');
  wanted.type := arg_text(args, 'type', 200, true);
  wanted.version := coalesce(arg_text(args, 'version', 200), '1');
  wanted.endpoint := arg_text(args, 'endpoint', 200);
  wanted.actor := arg_text(args, 'actor', 200);
  for part in select k as field, args->k as body from unnest(array['inputSchema', 'outputSchema']) k where args ? k loop
    if jsonb_typeof(part.body) not in ('object', 'boolean') or octet_length(part.body::text) > 1048576 then
      perform refuse('invalid_argument', part.field || ' must be a JSON Schema of at most 1 MiB', jsonb_build_object('field', part.field));
    end if;
  end loop;
  wanted.input_schema := args->'inputSchema';
  wanted.output_schema := args->'outputSchema';
  wanted.retry_policy := case when args ? 'retryPolicy' then normalize_endpoint_policy(args->'retryPolicy', 'retryPolicy') end;
  wanted.max_attempts := arg_integer(args, 'maxAttempts', 1, 100, null);
  wanted.timeout_ms := arg_integer(args, 'timeoutMs', 1, 31536000000, null);
  wanted.published_at := at;
  wanted.digest := encode(sha256(convert_to((contract_json(wanted) - array['digest', 'publishedAt', 'actor'])::text, 'UTF8')), 'hex');
  insert into contract select wanted.* on conflict do nothing;
  if found then
    update settings set contracts_version = contracts_version + 1;
    return (contract_json(wanted) || '{"replayed":false}')::text;
  end if;
  select * into strict held from contract c where c.type = wanted.type and c.version = wanted.version;
  select coalesce(jsonb_agg(m.key order by m.key), '[]') into fields
  from jsonb_each(contract_json(wanted) - array['digest', 'publishedAt', 'actor']) m
  join jsonb_each(contract_json(held)) h using (key) where m.value is distinct from h.value;
  if fields <> '[]' then
    perform refuse('contract_conflict', format('contract %s@%s is already published with another %s: publish a new version', wanted.type, wanted.version,
      (select string_agg(f, ', ') from jsonb_array_elements_text(fields) f)), jsonb_build_object('conflictingFields', fields));
  end if;
  return (contract_json(held) || '{"replayed":true}')::text;
end $$;

create or replace function rpc_contracts_get(args jsonb) returns text language sql stable security definer set search_path from current as $$
  select coalesce((select contract_json(c) from contract c
    where c.type = arg_text(args, 'type', 200, true) and c.version = coalesce(arg_text(args, 'version', 200), '1'))::text, 'null')
$$;

-- All contracts, or those named in `handlers`, with the version of the whole set.
create or replace function rpc_contracts_list(args jsonb) returns text language sql stable security definer set search_path from current as $$
  select jsonb_build_object('contractsVersion', (select s.contracts_version from settings s), 'contracts', coalesce((
    select jsonb_agg(contract_json(c) order by c.type, c.version) from contract c
    where not args ? 'handlers' or (c.type, c.version) in (
      select h->>'type', coalesce(h->>'version', '1') from jsonb_array_elements(args->'handlers') h)), '[]'))::text
$$;
