-- A lane: all jobs of one queue, type, version, endpoint and priority (synthetic tests
-- apart, since other gates hold them). Everything that decides whether jobs may
-- be claimed is the same for a whole lane, so jobs carry its id and nothing else of it.
-- The id is a hash of its names, and there is no unique constraint on purpose: two transactions that meet a
-- new lane together both write its row, with the same id, and neither waits for the other's commit.
create table lane (
  id bigint not null,
  queue text collate "C" not null,
  type text collate "C" not null,
  version text collate "C" not null,
  endpoint text collate "C",
  priority int2 not null,
  synthetic boolean not null
);
create index lane_id on lane (id);
create index lane_handler on lane (queue, type, version);
create index lane_endpoint on lane (endpoint) where endpoint is not null;
