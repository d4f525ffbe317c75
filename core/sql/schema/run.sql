-- Runs group jobs; jobs may wait for other jobs, in a run or outside.
create table run (
  id uuid primary key,
  name text collate "C" not null,
  started_at timestamptz not null,
  finished_at timestamptz
);
create index job_run on job (run_id) where run_id is not null;
create index job_after on job (after_id) where after_id is not null;
create index runtime_after on runtime (after_id) where state = 'b';

-- Bodies are replaced by run.sql; the trigger needs the function to be there.
create function recheck_predecessor() returns trigger language plpgsql as 'begin return null; end';
create constraint trigger recheck_predecessor after insert on runtime deferrable initially deferred
  for each row when (new.state = 'b') execute function recheck_predecessor();
