// Compiled, never run: what users write must type-check under --strict.
import {
  type Claim,
  type ErrorDecision,
  type Job,
  type JobSnapshot,
  LeaseLostError,
  NonRetryableError,
  Queue,
  RetryableError,
  type RetryPolicy,
  Worker,
} from "drayhorse";

declare function fetchRows(accountId: number, options: { signal: AbortSignal }): Promise<string[]>;

const queue = await Queue.connect("embedded:./.drayhorse");
await queue.migrate();
await queue.enqueue("provider.sync", { accountId: 7 }, { maxAttempts: 5 });

const worker = new Worker(queue, { concurrency: 16 });
worker.handle("provider.sync", async (payload, job) => {
  const rows = await job.checkpoint("fetch", () => fetchRows(payload.accountId, { signal: job.signal }));
  return { rows: rows.length };
});
await worker.run();

// A named policy type, absent options spelled out, a typed payload, both forms of retryDelayMs.
interface Fixed {
  type: string;
  delayMs: number;
  [key: string]: unknown;
}
const fixed: Fixed = { type: "fixed", delayMs: 1 };
const policy: RetryPolicy = fixed;
const enqueued = await queue.enqueue("x", 1n, {
  retryPolicy: policy,
  runAt: new Date(),
  priority: undefined,
});
const snapshot: JobSnapshot | undefined = await queue.get(enqueued);
const due: Date | undefined = snapshot?.nextRunAt;
await queue.redrive(enqueued, { actor: "me", reason: "fixed", requestId: "1" });
await queue.redrive({ type: "x" }, { actor: "me", reason: "fixed", requestId: "2", limit: 10 });
const claims: Claim[] = await queue.claim({ handlers: [{ type: "x" }], limit: 5 });
for (const claim of claims) await queue.fail(claim, new RetryableError("later", 1_000), { delayMs: 0 });

new Worker(queue, { retryDelayMs: 5 });
new Worker(queue, {
  retryDelayMs: (attempt: number, job: Job) => (job.tags.includes("slow") ? attempt * 1_000 : undefined),
  classifyError: (error): ErrorDecision | undefined =>
    error instanceof LeaseLostError ? { retryable: false } : undefined,
  onError: (error, { jobId }) => console.error(jobId, error.message),
})
  .handle("typed", ({ amount }: { amount: number }, job) => job.progress(amount))
  .handle("refusing", () => Promise.reject(new NonRetryableError("no", { uncertain: true, cause: due })), {
    version: "2",
    classifyError: () => undefined,
  });

// @ts-expect-error an option nobody knows
await queue.enqueue("x", {}, { maxAttempt: 5 });
// @ts-expect-error null is not absent
await queue.enqueue("x", {}, { queue: null });
// @ts-expect-error a policy has a type
await queue.enqueue("x", {}, { retryPolicy: { delayMs: 1 } });
