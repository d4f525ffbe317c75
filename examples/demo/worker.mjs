// The demo's TypeScript worker: calls the provider for each job.
import { decisionFromResponse, NonRetryableError, Queue, RetryableError, Worker } from "drayhorse";

const queue = await Queue.connect(process.env.DRAYHORSE_URL);
const worker = new Worker(queue, { concurrency: 8, leaseMs: 3_000, name: "typescript" });

worker.handle("provider.sync", async (payload, job) => {
  const response = await fetch(process.env.PROVIDER_URL, {
    method: "POST",
    body: JSON.stringify(payload),
    headers: { "Content-Type": "application/json", "Idempotency-Key": job.idempotencyKey },
    signal: job.signal,
  });
  if (response.ok) return response.json();
  const { retryable, retryAfterMs, uncertain } = decisionFromResponse(response);
  const message = `the provider answered ${response.status}`;
  throw retryable ? new RetryableError(message, retryAfterMs) : new NonRetryableError(message, { uncertain });
});

await worker.run();
await queue.close();
