-- What happened and why. Appended, never changed (guard.sql); only retention removes it.

-- The end of a job. state: s succeeded, f failed, c canceled, k skipped.
-- The attempt that ended it with success has its record here; all others have one in `attempt`.
create table outcome (
  job_id uuid primary key,
  lane_id bigint not null,
  finished_at timestamptz not null,
  claimed_at timestamptz,
  claim_id uuid,
  worker_id int,
  attempt int2 not null,
  claim_no int2,
  state "char" not null check (state in ('s', 'f', 'c', 'k')),
  uncertain boolean not null default false,
  ready_at timestamptz,
  -- Why it ended so: exhausted, non_retryable, deadline, output, input, checkpoint, canceled, ...
  reason text,
  result text,
  detail jsonb
);
-- Appended in the order of time, so a summary per range of pages is enough for retention.
create index outcome_finished on outcome using brin (finished_at) with (pages_per_range = 32, autosummarize = on);
create index outcome_other on outcome (job_id) where state <> 's';

-- An attempt that did not succeed and was not released.
create table attempt (
  job_id uuid not null,
  attempt int2 not null,
  claim_no int2 not null,
  claim_id uuid not null,
  worker_id int,
  claimed_at timestamptz not null,
  ready_at timestamptz,
  ended_at timestamptz not null,
  -- error, timeout, lease, deadline, output, input, checkpoint, cancel
  cause text not null,
  uncertain boolean not null,
  -- Ended by a report under its fence, not by recovery.
  reported boolean not null,
  -- The wait before the next attempt; null when there is none.
  delay_ms bigint,
  source text,
  run_at timestamptz,
  error_name text,
  error_message text,
  -- chosenMs, chosenSource, overrideRefused, hintIgnored: whatever else explains the delay.
  detail jsonb,
  primary key (job_id, attempt)
);

-- Full error texts: of the first and the last ten attempts, 1 MiB a job.
create table error_text (
  job_id uuid not null,
  attempt int2 not null,
  error jsonb not null,
  primary key (job_id, attempt)
);

-- Acts that no other row tells: released, cancel_requested, redriven, replayed, unblocked, ...
create table event (
  id bigint generated always as identity primary key,
  job_id uuid not null,
  at timestamptz not null,
  kind text not null,
  attempt int2,
  data jsonb
);
create index event_job on event (job_id, id);

create table checkpoint (
  job_id uuid not null,
  name text collate "C" not null,
  attempt int2 not null,
  saved_at timestamptz not null,
  value text not null,
  primary key (job_id, name)
);

-- One row per redrive or replay request and source: two calls with one request id make one job.
create table redrive_request (
  request_id text collate "C" not null,
  source_id uuid not null,
  job_id uuid not null,
  at timestamptz not null,
  actor text not null,
  reason text not null,
  primary key (request_id, source_id)
);
create index redrive_request_source on redrive_request (source_id);
create index redrive_request_job on redrive_request (job_id);
