-- Runs at the end of a migration, in its transaction, when the protocol functions have been created or replaced.
do $$
declare
  f record;
  r record;
begin
  -- What this library's files no longer hold: old signatures. A function that a trigger or a view needs stays.
  for f in
    select p.oid::regprocedure as signature from pg_proc p
    where p.pronamespace = (select n.oid from pg_namespace n where n.nspname = current_schema)
      and p.xmin <> pg_current_xact_id()::xid
      and not exists (select from pg_depend d where d.refclassid = 'pg_proc'::regclass and d.refobjid = p.oid)
      and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
      and pg_has_role(p.proowner, 'USAGE')
  loop
    execute format('drop routine %s', f.signature);
  end loop;

  for f in
    select p.oid::regprocedure as signature from pg_proc p
    where p.pronamespace = (select n.oid from pg_namespace n where n.nspname = current_schema)
      and pg_has_role(p.proowner, 'USAGE')
  loop
    execute format('revoke execute on function %s from public', f.signature);
  end loop;

  -- Roles that had an access get the new functions of that access, too.
  for r in
    select distinct grantee.rolname, marker.access
    from (values ('enqueue', 'producer'), ('rpc_get', 'reader'), ('claim_lanes', 'worker')) marker (function, access)
    join pg_proc p on p.proname = marker.function
      and p.pronamespace = (select n.oid from pg_namespace n where n.nspname = current_schema)
    cross join lateral aclexplode(p.proacl) entry
    join pg_roles grantee on grantee.oid = entry.grantee
    where entry.privilege_type = 'EXECUTE' and entry.grantee <> p.proowner
  loop
    perform change_access(r.rolname, r.access, true);
  end loop;
end $$;
