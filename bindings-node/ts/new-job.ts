/** What callers say of a job or a claim as the arguments of a verb; `Queue` sends them. */
import { Enqueued } from "./enqueued.js";
import { encodeArguments, encodePolicy, encodeValue, RawJson } from "./json.js";
import type { ClaimRef, JobFilter, JobRef, NewJob } from "./types.js";

/** The arguments of `enqueue`. */
export function oneJob(job: NewJob): object {
  return jobArguments(job, "");
}

/** The arguments of `enqueueMany` and `enqueueStatement`. */
export function manyJobs(jobs: readonly NewJob[]): object {
  return { jobs: jobs.map((job, index) => jobArguments(job, `jobs[${index}]`)) };
}

/** `root` names the job in refusals; empty for a lone one. */
function jobArguments({ type, payload, options }: NewJob, root: string): object {
  const value = encodeValue(payload, root === "" ? "payload" : `${root}.payload`);
  const policy = options && encodePolicy(options.retryPolicy);
  return {
    type,
    payload: value === undefined ? undefined : new RawJson(value),
    options: options && new RawJson(encodeArguments({ ...options, retryPolicy: policy }, root)),
  };
}

/** The job that an answer tells of. */
export function enqueuedFrom(answer: unknown): Enqueued {
  const { id, replayed } = answer as { id: string; replayed: boolean };
  return new Enqueued(id, replayed);
}

/** Which jobs a redrive or replay is about. */
export function targetOf(target: JobRef | JobFilter): object {
  const isOne = typeof target === "string" || target instanceof Enqueued;
  return isOne ? { id: String(target) } : { filter: target };
}

/** Of a claim only what names it. */
export function claimOf(claim: ClaimRef): ClaimRef {
  return { id: claim.id, fence: claim.fence };
}
