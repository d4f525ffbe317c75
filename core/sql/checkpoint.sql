-- Checkpoints and progress: what a running attempt leaves behind, under its fence.

create or replace function checkpoint_get(p_job uuid, p_claim uuid, p_number int2, p_name text) returns text
language plpgsql stable security definer set search_path from current as $$
begin
  perform from runtime r where r.job_id = p_job and r.claim_id = p_claim and r.claim_no = p_number;
  if not found then
    perform refuse('lease_lost', 'the claim is no longer current');
  end if;
  return (select c.value from checkpoint c where c.job_id = p_job and c.name = p_name);
end $$;

create or replace function checkpoint_put(p_job uuid, p_claim uuid, p_number int2, p_name text, p_value text) returns int2
language plpgsql security definer set search_path from current as $$
declare
  r runtime;
  held text;
begin
  perform check_name(jsonb_build_object('name', p_name), '', 'name', 200);
  perform check_value(p_value::jsonb, 'value', (select s.max_payload_bytes from settings s));
  select * into r from runtime w where w.job_id = p_job and w.claim_id = p_claim and w.claim_no = p_number
  for no key update;
  if not found then
    perform refuse('lease_lost', 'the claim is no longer current');
  end if;
  select c.value into held from checkpoint c where c.job_id = p_job and c.name = p_name;
  if found then
    if held::jsonb <> p_value::jsonb then
      perform refuse('checkpoint_conflict', format('checkpoint %s already holds another value', p_name), jsonb_build_object('name', p_name));
    end if;
    return 0;
  end if;
  insert into checkpoint (job_id, name, attempt, saved_at, value) values (p_job, p_name, r.attempt, clock_now(), p_value::jsonb::text);
  if not r.checkpoints then
    update runtime w set checkpoints = true where w.job_id = p_job;
  end if;
  return 0;
end $$;

-- The last value is kept while the attempt runs, and shown by `get`.
create or replace function progress(p_job uuid, p_claim uuid, p_number int2, p_value text) returns void
language plpgsql security definer set search_path from current as $$
begin
  perform check_value(p_value::jsonb, 'value', 65536);
  update runtime r set progress = p_value
  where r.job_id = p_job and r.claim_id = p_claim and r.claim_no = p_number;
  if not found then
    perform refuse('lease_lost', 'the claim is no longer current');
  end if;
end $$;
