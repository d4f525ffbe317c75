-- Reading the one JSON argument of a control verb: typed refusals that name the field.

create or replace function arg_text(args jsonb, field text, max_bytes int, required boolean default false) returns text
language plpgsql immutable set search_path from current as $$
begin
  if not args ? field or args->field = 'null' then
    if required then
      perform refuse('invalid_argument', field || ' is missing', jsonb_build_object('field', field));
    end if;
    return null;
  end if;
  if not is_name(args->field, max_bytes) then
    perform refuse('invalid_argument', format('%s must be 1 to %s bytes of UTF-8', field, max_bytes),
      jsonb_build_object('field', field, 'limit', max_bytes));
  end if;
  return args->>field;
end $$;

create or replace function arg_uuid(args jsonb, field text) returns uuid
language plpgsql immutable set search_path from current as $$
begin
  if not coalesce(jsonb_typeof(args->field) = 'string'
      and args->>field ~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$', false) then
    perform refuse('invalid_argument', field || ' must be a UUID', jsonb_build_object('field', field));
  end if;
  return (args->>field)::uuid;
end $$;

create or replace function arg_integer(args jsonb, field text, low bigint, high bigint, otherwise bigint) returns bigint
language plpgsql immutable set search_path from current as $$
begin
  if not args ? field or args->field = 'null' then
    return otherwise;
  end if;
  perform check_integer(args, '', field, low, high);
  return (args->>field)::numeric::bigint;
end $$;

create or replace function arg_boolean(args jsonb, field text) returns boolean
language plpgsql immutable set search_path from current as $$
begin
  if not args ? field or args->field = 'null' then
    return false;
  end if;
  if jsonb_typeof(args->field) <> 'boolean' then
    perform refuse('invalid_argument', field || ' must be true or false', jsonb_build_object('field', field));
  end if;
  return (args->>field)::boolean;
end $$;

-- `{"id", "fence"}` as its three parts. A fence that is no fence belongs to no claim.
create or replace function arg_claim(claim jsonb, out job_id uuid, out claim_id uuid, out claim_no int2)
language plpgsql immutable set search_path from current as $$
begin
  if jsonb_typeof(claim) is distinct from 'object' then
    perform refuse('invalid_argument', 'claim must be an object with id and fence', '{"field":"claim"}');
  end if;
  job_id := arg_uuid(claim, 'id');
  if not coalesce(claim->>'fence' ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/[0-9]{1,4}$', false) then
    perform refuse('invalid_argument', 'claim.fence must be the fence of a claim', '{"field":"claim.fence"}');
  end if;
  claim_id := split_part(claim->>'fence', '/', 1)::uuid;
  claim_no := split_part(claim->>'fence', '/', 2)::int2;
end $$;
