-- Gates: what may hold back an endpoint (kind e) or a queue (kind q). A row exists once something was set or
-- happened; a name without one is open and unlimited. A claim reads the row of an open, unlimited gate and locks it
-- only when a token, a slot or a probe has to be taken.
create table gate (
  id int generated always as identity primary key,
  kind "char" not null check (kind in ('e', 'q')),
  name text collate "C" not null,
  paused jsonb,
  rate_limit int check (rate_limit >= 1),
  rate_interval_ms bigint check (rate_interval_ms >= 1),
  rate_burst int check (rate_burst between 1 and rate_limit),
  max_concurrency int check (max_concurrency >= 1),
  -- Of endpoints only: the default retry policy and the circuit's settings.
  policy jsonb,
  failure_threshold int not null default 5,
  cooldown_ms bigint not null default 60000,
  probe_timeout_ms bigint not null default 900000,
  unique (kind, name),
  check ((rate_limit is null) = (rate_interval_ms is null) and (rate_limit is null) = (rate_burst is null))
);

-- The token bucket of a gate with a rate, as the time in microseconds at which it would be full again.
create table rate (
  gate_id int primary key references gate,
  full_at_us bigint not null
) with (fillfactor = 20);

-- The circuit of an endpoint, from its first failure on. state: c closed, o open, h half-open.
-- A report counts only for the generation its claim carries.
create table circuit (
  gate_id int primary key references gate,
  state "char" not null default 'c' check (state in ('c', 'o', 'h')),
  forced "char" check (forced in ('c', 'o')),
  failures int not null default 0,
  generation int not null default 0,
  opened_at timestamptz,
  -- When the cooldown ends and a probe may be claimed.
  probe_at timestamptz,
  -- The probe that is out, and when it is overdue.
  probe_job uuid,
  probe_claim uuid,
  overdue_at timestamptz,
  last_failed_job uuid,
  last_error jsonb,
  changed_at timestamptz not null
) with (fillfactor = 50);
create index circuit_probing on circuit (overdue_at) where state = 'h';

-- What happened to an endpoint or queue, and who did it.
create table gate_event (
  id bigint generated always as identity primary key,
  kind "char" not null,
  name text collate "C" not null,
  at timestamptz not null,
  event text not null,
  job_id uuid,
  data jsonb not null
);
create index gate_event_name on gate_event (kind, name, id);

-- A row that a claim takes through gates, with what it takes of them, and when.
create type gated_pick as (
  job_id uuid, seq bigint, place int, generation int, probe boolean, endpoint_slot int, queue_slot int, timeout_ms bigint,
  at timestamptz);
