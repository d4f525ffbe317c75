-- Tool contracts: what a (type, version) takes and gives, and its defaults. Published once, never changed (guard).
create table contract (
  type text collate "C" not null,
  version text collate "C" not null,
  digest text not null,
  published_at timestamptz not null,
  actor text,
  endpoint text collate "C",
  input_schema jsonb,
  output_schema jsonb,
  retry_policy jsonb,
  max_attempts int2,
  timeout_ms bigint,
  primary key (type, version)
);
