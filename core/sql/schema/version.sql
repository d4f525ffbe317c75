-- The migrations that were applied, the largest of which is the version every client compares with its own.
create table schema_version (
  version int primary key,
  applied_at timestamptz not null default pg_catalog.clock_timestamp()
);
