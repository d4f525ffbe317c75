-- Who is alive, what it handles, what it runs. A worker gets a new id at every start: a restarted process never
-- passes for the one before it.
create table worker (
  id int generated always as identity primary key,
  name text not null,
  host text,
  pid int,
  language text,
  channel text,
  queues text[] not null,
  -- Parallel arrays: what it handles.
  types text[] not null,
  versions text[] not null,
  slots int not null,
  running int not null default 0,
  started_at timestamptz not null,
  seen_at timestamptz not null,
  stopped_at timestamptz
);

-- Workers that wait for a wake-up. Unlogged: forgetting it costs one polling interval.
create unlogged table sleeper (
  worker_id int primary key,
  channel text not null,
  queues text[] not null,
  types text[] not null,
  until timestamptz not null
);
