-- What a database may set for itself. One row.
create table settings (
  one boolean primary key default true check (one),
  -- Largest payload, result or checkpoint, in bytes of JSON text.
  max_payload_bytes int not null default 1048576 check (max_payload_bytes between 1024 and 16777216),
  keep_succeeded_ms bigint not null default 604800000 check (keep_succeeded_ms >= 0),
  keep_other_ms bigint not null default 2592000000 check (keep_other_ms >= 0),
  -- Counts the publications of contracts.
  contracts_version int not null default 0,
  -- Moves this schema's clock; only tests set it (clock.sql).
  clock_offset_ms bigint not null default 0
);
insert into settings default values;
