// Enqueues a share of the demo's jobs from TypeScript's runtime: enqueue.mjs FROM TO.
import { Queue } from "drayhorse";

const policies = [
  { type: "fixed", delayMs: 900 },
  { type: "exponential", initialDelayMs: 300, multiplier: 2, maxDelayMs: 3_000 },
  { type: "decorrelated-jitter", baseDelayMs: 300, maxDelayMs: 3_000 },
];

const [first, last] = process.argv.slice(2).map(Number);
const queue = await Queue.connect(process.env.DRAYHORSE_URL);
for (let accountId = first; accountId < last; accountId += 1) {
  await queue.enqueue(
    "provider.sync",
    { accountId },
    { endpoint: "provider", maxAttempts: 20, retryPolicy: policies[accountId % 3], tags: ["from:typescript"] },
  );
}
await queue.close();
