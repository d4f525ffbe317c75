// Compiled, never run: operations, runs, replay, contracts and transactions as users write them under --strict.
import {
  type CircuitState,
  type Contract,
  type EndpointSnapshot,
  type Endpoints,
  type Queue,
  Run,
  type RunSnapshot,
  type Transaction,
} from "drayhorse";
import pg from "pg";
import postgres from "postgres";

export async function operate(queue: Queue) {
  const by = { actor: "ana", reason: "maintenance" };
  const endpoints: Endpoints = queue.endpoints;
  const api: EndpointSnapshot = await endpoints.configure("api", {
    ...by,
    rateLimit: { limit: 5, intervalMs: 1_000, burst: undefined },
    maxConcurrency: null,
    retryPolicy: {
      type: "custom",
      maxAttempts: 3,
      initialDelayMs: 0,
      multiplier: 2,
      maxDelayMs: 10,
      jitterPercent: 5,
    },
    circuit: { cooldownMs: 5_000 },
  });
  const state: CircuitState = api.circuit.state;
  const since: Date | undefined = (await endpoints.pause("api", by)).paused?.at;
  await endpoints.resume("api", by);
  await endpoints.forceOpen("api", by);
  await endpoints.forceClose("api", by);
  await endpoints.reset("api", { actor: "ana" });
  const names: string[] = (await queue.queues.list({ limit: 5, after: "a" })).map(({ name }) => name);
  const tokens: number | undefined = (await queue.queues.get("mail"))?.tokensLeft;
  await queue.queues.configure("mail", { ...by, rateLimit: null });
  // @ts-expect-error a queue has no circuit
  await queue.queues.configure("mail", { ...by, circuit: {} });
  // @ts-expect-error every act has an actor
  await queue.queues.pause("mail", { reason: "x" });
  // @ts-expect-error a queue is not forced
  await queue.queues.forceOpen("mail", by);
  return [state, since, names, tokens];
}

export async function recover(queue: Queue) {
  const run: Run = await queue.startRun("order 7");
  const charge = await run.enqueue("charge", { amount: 7 }, { endpoint: "api" });
  await run.enqueue("mail", undefined, { after: { jobId: charge, on: "succeeded" } });
  await queue.enqueue(
    "apology",
    {},
    { after: { jobId: charge.id, on: "failed" }, runId: run.id, synthetic: false },
  );
  const snapshot: RunSnapshot | undefined = await new Run(queue, run.id).get();
  const failed: number | undefined = (await run.finish()).jobs.failed;
  const { risks, wouldRun } = await queue.replayPreview(charge);
  const { count } = await queue.replayPreview({ state: "failed" });
  const act = { actor: "ana", reason: "fixed", requestId: "1", acknowledgeDuplicateRisk: risks.started };
  const [made] = await queue.replay(charge, { ...act, maxAttempts: wouldRun.maxAttempts });
  await queue.replay({ endpoint: "api" }, { ...act, limit: count, after: made?.sourceId });
  // @ts-expect-error a redrive keeps the job's own budget
  await queue.redrive(charge, { ...act, maxAttempts: 2 });
  // @ts-expect-error an end a job cannot have
  await run.enqueue("mail", undefined, { after: { jobId: charge, on: "done" } });
  return [snapshot, failed];
}

interface Schema {
  type: string;
  properties: Record<string, object>;
}

export async function publish(queue: Queue, inputSchema: Schema) {
  const { replayed, digest } = await queue.contracts.publish({
    type: "charge",
    version: "3",
    endpoint: "api",
    inputSchema,
    outputSchema: true,
    retryPolicy: { type: "standard" },
    maxAttempts: 5,
  });
  const contract: Contract | undefined = await queue.contracts.get("charge", "3");
  const all: Contract[] = await queue.contracts.list([{ type: "charge" }, { type: "x", version: "3" }]);
  return [replayed, digest, contract, all];
}

export async function join(queue: Queue) {
  const client = new pg.Client();
  await queue.enqueue("job", {}, { tx: client, priority: 1 });
  const pooled = await new pg.Pool().connect();
  await queue.enqueueMany([{ type: "job" }], { tx: pooled });
  const sql = postgres();
  await sql.begin(async (tx) => {
    await queue.enqueue("job", {}, { tx });
  });
  await queue.enqueue("job", {}, { tx: sql });
  const other = { execute: async (_text: string, _values: unknown[]): Promise<{ enqueue: string }[]> => [] };
  const tx: Transaction = (text, params) => other.execute(text, params);
  await queue.enqueue("job", {}, { tx });
  await (await queue.startRun("x")).enqueue("job", {}, { tx: client });
  // @ts-expect-error a job of a batch has no transaction of its own
  await queue.enqueueMany([{ type: "job", options: { tx: client } }]);
  // @ts-expect-error a string is no transaction
  await queue.enqueue("job", {}, { tx: "begin" });
}
