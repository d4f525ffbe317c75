-- The definition of a job: written once at enqueue, never changed (guard.sql), read at claims and by people.
create table job (
  id uuid primary key,
  lane_id bigint not null,
  enqueued_at timestamptz not null,
  max_attempts int2 not null,
  synthetic boolean not null default false,
  -- Enqueued while a contract was published for its type and version.
  contracted boolean not null default false,
  -- JSON text; null when the caller gave none, which is not JSON null.
  payload text,
  -- The normalized retry policy; null means the compatibility delays.
  policy jsonb,
  tags text[],
  run_at timestamptz,
  deadline timestamptz,
  timeout_ms bigint,
  -- What destinations are told to recognize a repetition by; null means the job's id.
  effect_key text,
  -- The job that this one repeats (redrive, replay), and what the operator said.
  source_id uuid,
  after_id uuid,
  after_on "char" check (after_on in ('s', 'f')),
  run_id uuid
);
create index job_source on job (source_id) where source_id is not null;

-- The live row of a job that has not ended: narrow, and deleted with the job's end.
-- state: b blocked, s scheduled, r ready, a active.
create sequence position;
-- Counts rows claimed through the public claim, so that every 20th can go to the one that has waited longest.
create sequence turn;
create table runtime (
  job_id uuid primary key,
  lane_id bigint not null,
  -- Place in the lane, given anew whenever the job becomes ready.
  seq bigint not null,
  -- Scheduled: when it is due. Active: the earliest of lease, timeout and deadline.
  wake_at timestamptz,
  claimed_at timestamptz,
  -- The claim that holds it: (claim_id, claim_no) is the fence.
  claim_id uuid,
  worker_id int,
  attempt int2 not null default 0,
  claim_no int2,
  state "char" not null check (state in ('b', 's', 'r', 'a')),
  -- Blocked: the job it waits for.
  after_id uuid,
  -- Some attempt may have had its effect although it did not end as a success.
  uncertain boolean not null default false,
  checkpoints boolean not null default false,
  -- Set only where it is later than wake_at, because timeout or deadline comes first.
  lease_until timestamptz,
  timeout_ms bigint,
  deadline timestamptz,
  -- When it became ready after waiting; null for a job that was ready at its enqueue.
  ready_at timestamptz,
  cancel jsonb,
  progress text,
  -- Of jobs with an endpoint: the circuit's generation at the claim, and whether it is the probe.
  generation int,
  probe boolean,
  -- The gates whose slots the attempt takes.
  endpoint_slot int,
  queue_slot int
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.2);
create index runtime_ready on runtime (lane_id, seq) where state = 'r';
create index runtime_due on runtime (wake_at) where state = 's';
create index runtime_lease on runtime (wake_at) where state = 'a';
create index runtime_deadline on runtime (deadline) where deadline is not null and state <> 'a';

create index runtime_endpoint_slot on runtime (endpoint_slot) where endpoint_slot is not null;
create index runtime_queue_slot on runtime (queue_slot) where queue_slot is not null;

-- Names one enqueue for its time to live, whatever becomes of the job.
create table idempotency (
  key text collate "C" primary key,
  job_id uuid not null,
  expires_at timestamptz not null,
  -- What the caller sent, but for the payload, which the job keeps, and of which there is a hash.
  definition jsonb not null
);
create index idempotency_expiry on idempotency (expires_at);
