-- The one source of time. It is inlined where it is used, so a plain schema pays nothing for it; the clock of a
-- test schema is moved by replacing it.
create or replace function clock_now() returns timestamptz language sql volatile parallel safe
as 'select pg_catalog.clock_timestamp()';

-- Moves this schema's clock forward. Needs the owner, since it replaces a function.
create or replace function advance_clock(ms bigint) returns void language plpgsql set search_path from current as $$
declare
  total bigint;
begin
  if ms is null or ms < 0 or ms > 3153600000000 then
    perform refuse('invalid_argument', 'ms must be an integer from 0 to 3153600000000', '{"field":"ms"}');
  end if;
  update settings set clock_offset_ms = clock_offset_ms + ms returning clock_offset_ms into total;
  execute format(
    'create or replace function clock_now() returns timestamptz language sql volatile parallel safe as %L',
    format('select pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => %s)', total / 1000.0));
end $$;

create or replace function rpc_advance_clock(args jsonb) returns text language plpgsql set search_path from current as $$
begin
  perform advance_clock((args->>'ms')::bigint);
  return '{}';
end $$;

-- A duration in milliseconds as an interval, exact to the millisecond.
create or replace function ms(amount bigint) returns interval language sql immutable parallel safe
as 'select amount * interval ''1 millisecond''';

-- RFC 3339 in UTC with microseconds: the one text form of a time.
create or replace function iso(t timestamptz) returns text language sql stable parallel safe
as $$ select pg_catalog.to_char(t at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') $$;

create or replace function ms_between(earlier timestamptz, later timestamptz) returns bigint language sql stable parallel safe
as 'select pg_catalog.ceil(extract(epoch from (later - earlier)) * 1000)::bigint';
