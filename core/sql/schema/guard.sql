-- Definitions, outcomes and attempt records are immutable for every role; only retention removes them.
-- Retention says who it is by a row no other role can write.
create table retention_pass (
  transaction_id xid8 primary key
);

create function refuse_change() returns trigger language plpgsql security definer set search_path from current as $$
begin
  if tg_op = 'DELETE' and exists (select from retention_pass where transaction_id = pg_current_xact_id()) then
    return null;
  end if;
  raise exception using
    errcode = 'YD007',
    message = format('%s of %I is refused: it is immutable, and only retention removes it', tg_op, tg_table_name),
    detail = jsonb_build_object('code', 'wrong_state', 'table', tg_table_name)::text;
end $$;

create trigger immutable before update or delete or truncate on job for each statement execute function refuse_change();
create trigger immutable before update or delete or truncate on outcome for each statement execute function refuse_change();
create trigger immutable before update or delete or truncate on attempt for each statement execute function refuse_change();
create trigger immutable before update or delete or truncate on contract for each statement execute function refuse_change();

