import assert from "node:assert/strict";
import test from "node:test";
import { inspect } from "node:util";
import {
  ContractConflictError,
  ContractViolationError,
  InvalidArgumentError,
  PolicyInvalidError,
} from "drayhorse";
import pg from "pg";
import { defer, openQueue, runWorker, sql, testUrl } from "./support.mjs";

const inputSchema = {
  type: "object",
  properties: { amount: { type: "integer", minimum: 1 }, note: { enum: ["a", null] } },
  required: ["amount"],
};

test("a contract is published once, for good, and read back as it was given", async (t) => {
  const { queue } = await openQueue(t);
  assert.equal(await queue.contracts.get("charge"), undefined);
  const made = await queue.contracts.publish({
    type: "charge",
    version: "2",
    endpoint: "payments",
    inputSchema,
    outputSchema: true,
    retryPolicy: { type: "standard" },
    maxAttempts: 4,
    timeoutMs: 5_000,
    actor: "ana",
  });
  assert.deepEqual(
    [made.type, made.version, made.endpoint, made.actor, made.replayed],
    ["charge", "2", "payments", "ana", false],
  );
  assert.deepEqual(
    [made.inputSchema, made.outputSchema, made.maxAttempts, made.timeoutMs],
    [inputSchema, true, 4, 5_000],
  );
  assert.equal(made.retryPolicy.type, "custom");
  assert.ok(made.publishedAt instanceof Date);
  assert.match(made.digest, /^[0-9a-f]{64}$/);

  const same = {
    type: "charge",
    version: "2",
    endpoint: "payments",
    inputSchema,
    outputSchema: true,
    retryPolicy: { type: "standard" },
    maxAttempts: 4,
    timeoutMs: 5_000,
  };
  const again = await queue.contracts.publish(same);
  assert.deepEqual([again.replayed, again.digest, again.actor], [true, made.digest, "ana"]);
  const error = await queue.contracts
    .publish({ ...same, maxAttempts: 5 })
    .then(assert.fail, (thrown) => thrown);
  assert.ok(error instanceof ContractConflictError, inspect(error));
  assert.ok(error.details.conflictingFields.includes("maxAttempts"));

  const { replayed: _, ...contract } = made;
  assert.deepEqual(await queue.contracts.get("charge", "2"), contract);
  await queue.contracts.publish({ type: "charge" });
  const bare = await queue.contracts.get("charge");
  assert.deepEqual(Object.keys(bare).sort(), ["digest", "publishedAt", "type", "version"]);
  const versions = async (handlers) => (await queue.contracts.list(handlers)).map(({ version }) => version);
  assert.deepEqual(await versions(), ["1", "2"]);
  assert.deepEqual(await versions([{ type: "charge", version: "2" }, { type: "other" }]), ["2"]);
  assert.deepEqual(await versions([{ type: "charge" }]), ["1"]);
});

test("what is no contract is refused by name", async (t) => {
  const { queue } = await openQueue(t);
  const refused = async (contract, field, Class = InvalidArgumentError) => {
    const error = await queue.contracts.publish(contract).then(assert.fail, (thrown) => thrown);
    assert.ok(error instanceof Class, inspect(error));
    if (field) assert.equal(error.details.field, field, error.message);
  };
  await refused(undefined, "type");
  await refused({ type: "a", colour: 1 }, "colour");
  await refused({ type: "a", endpoint: null }, "endpoint");
  await refused({ type: "a", inputSchema: { const: new Map() } }, "inputSchema.const");
  await refused({ type: "a", inputSchema: { type: "no such type" } });
  await refused({ type: "a", retryPolicy: { type: "none" } }, undefined, PolicyInvalidError);
  assert.deepEqual(await queue.contracts.list(), []);
});

test("its defaults reach the jobs, and an enqueue against its schema is refused by path", async (t) => {
  const { queue } = await openQueue(t);
  await queue.contracts.publish({
    type: "charge",
    endpoint: "payments",
    inputSchema,
    maxAttempts: 4,
    timeoutMs: 5_000,
  });
  const job = await queue.get(await queue.enqueue("charge", { amount: 7 }));
  assert.deepEqual([job.endpoint, job.maxAttempts, job.timeoutMs], ["payments", 4, 5_000]);
  const error = await queue.enqueue("charge", { amount: "seven" }).then(assert.fail, (thrown) => thrown);
  assert.ok(error instanceof ContractViolationError, inspect(error));
  assert.match(inspect(error.details), /amount/);
  await assert.rejects(
    queue.enqueueMany([
      { type: "charge", payload: { amount: 1 } },
      { type: "charge", payload: {} },
    ]),
    ContractViolationError,
  );
  assert.equal((await queue.counts()).ready, 1);
});

test("a result against its schema ends the job at once", async (t) => {
  const { queue } = await openQueue(t);
  await queue.contracts.publish({ type: "charge", outputSchema: { type: "object", required: ["receipt"] } });
  const good = await queue.enqueue("charge", true);
  const bad = await queue.enqueue("charge", false);
  runWorker(t, queue, { charge: (isGood) => (isGood ? { receipt: 1 } : { lost: 1 }) });
  assert.equal((await queue.wait(good, 20_000)).state, "succeeded");
  const outcome = await queue.wait(bad, 20_000);
  assert.deepEqual(
    [outcome.state, outcome.reason, outcome.uncertain, outcome.attempt],
    ["failed", "output", true, 1],
  );
});

test("a contract that was published meanwhile holds in a transaction too", async (t) => {
  const { queue, schema } = await openQueue(t);
  // Knows of no contract yet.
  await queue.enqueue("charge", { amount: "free" });
  const { queue: other } = await openQueue(t, { schema });
  await other.contracts.publish({ type: "charge", inputSchema });
  const client = new pg.Client({ connectionString: testUrl() });
  await client.connect();
  defer(t, () => client.end());
  await client.query("begin");
  const kept = await queue.enqueue("charge", { amount: 1 }, { tx: client });
  await assert.rejects(queue.enqueue("charge", { amount: "free" }, { tx: client }), ContractViolationError);
  // The refusal came before the database: the transaction can go on.
  const many = await queue.enqueueMany([{ type: "charge", payload: { amount: 2 } }, { type: "x" }], {
    tx: client,
  });
  await client.query("commit");
  for (const one of [kept, ...many]) assert.equal((await queue.get(one)).state, "ready");
});

test("a transaction sees its own set of contracts: an older snapshot, or what it published itself", async (t) => {
  const { queue, schema } = await openQueue(t);
  const client = new pg.Client({ connectionString: testUrl() });
  await client.connect();
  defer(t, () => client.end());
  await client.query("begin isolation level repeatable read");
  await client.query(`select count(*) from "${schema}".settings`);
  await queue.contracts.publish({ type: "charge", inputSchema });
  await queue.enqueue("charge", { amount: 1 });
  const old = await queue.enqueue("charge", { amount: 2 }, { tx: client });
  await client.query("commit");
  assert.equal((await queue.get(old)).state, "ready");

  await client.query("begin");
  await client.query(`select "${schema}".rpc_contracts_publish($1)`, [{ type: "own", maxAttempts: 3 }]);
  const own = await queue.enqueue("own", 1, { tx: client });
  await client.query("commit");
  assert.equal((await queue.get(own)).maxAttempts, 3);
});

test("the answer of a bare statement tells the jobs, or that nothing was written", async (t) => {
  const { queue, schema } = await openQueue(t);
  const { queue: other } = await openQueue(t, { schema });
  await other.contracts.publish({ type: "charge", inputSchema });
  const run = async () => {
    const {
      sql: text,
      params,
      ids,
    } = await queue.enqueueStatement([{ type: "charge", payload: { amount: 1 } }]);
    const [row] = await sql(text, params);
    return { enqueued: await queue.enqueueAnswer(Object.values(row)[0]), ids };
  };
  const stale = await run();
  assert.equal(stale.enqueued, undefined);
  assert.equal(await queue.get(stale.ids[0]), undefined);
  const { enqueued, ids } = await run();
  assert.deepEqual(enqueued.map(String), ids);
  assert.equal((await queue.get(enqueued[0])).state, "ready");
  const error = await queue.enqueueAnswer("done").then(assert.fail, (thrown) => thrown);
  assert.equal(error.details.field, "answer");
});
