// A share of the work in Node: `fleet.mjs enqueue FROM TO` or `fleet.mjs work`.
import { setTimeout as sleep } from "node:timers/promises";
import { Queue, Worker } from "drayhorse";

const [verb, first, last] = process.argv.slice(2);
const queue = await Queue.connect(process.env.FLEET_URL, { schema: process.env.FLEET_SCHEMA });

if (verb === "enqueue") {
  const options = { maxAttempts: 50, retryPolicy: { type: "fixed", delayMs: 200 } };
  for (let number = Number(first); number < Number(last); number += 1) {
    await queue.enqueue("fleet", { number }, options);
  }
} else {
  const worker = new Worker(queue, { concurrency: 8, leaseMs: 2_000, graceMs: 3_000, name: "node" });
  worker.handle("fleet", async (payload) => {
    await sleep(50);
    return payload.number;
  });
  await worker.run();
}
await queue.close();
