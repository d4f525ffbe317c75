// The documentation's retry snippets as they stand there: they must compile, and retries.test.mjs runs this file.
import type { Queue } from "drayhorse";

export async function budget(queue: Queue, accountId: number) {
  await queue.enqueue("provider.sync", { accountId }, { maxAttempts: 5 });
}

export async function policy(queue: Queue, accountId: number) {
  const jitter = { type: "decorrelated-jitter", baseDelayMs: 1_000, maxDelayMs: 60_000 };
  await queue.enqueue("provider.sync", { accountId }, { retryPolicy: jitter, maxAttempts: 5 });
}
