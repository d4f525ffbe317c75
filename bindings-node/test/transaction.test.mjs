// Enqueues inside transactions of other people's drivers. A job exists exactly when its transaction commits.
import assert from "node:assert/strict";
import test from "node:test";
import { inspect } from "node:util";
import {
  Enqueued,
  IdempotencyConflictError,
  InvalidArgumentError,
  NotFoundError,
  PayloadInvalidError,
} from "drayhorse";
import pg from "pg";
import postgres from "postgres";
import { defer, openQueue, testUrl } from "./support.mjs";

const JOB = { amount: 9007199254740993n, note: "é 🚒 'quoted' $1 \\", nothing: null };

/** Each way into a transaction: `run` gives `tx` to a function inside one, and commits unless that throws. */
const DRIVERS = {
  "node-postgres": async (t) => {
    const client = new pg.Client({ connectionString: testUrl() });
    await client.connect();
    defer(t, () => client.end());
    return (body) => inside(client, () => body(client));
  },
  "node-postgres from a pool": async (t) => {
    const pool = new pg.Pool({ connectionString: testUrl(), max: 2 });
    defer(t, () => pool.end());
    return async (body) => {
      const client = await pool.connect();
      try {
        return await inside(client, () => body(client));
      } finally {
        client.release();
      }
    };
  },
  "postgres.js": async (t) => {
    const sql = openPostgres(t);
    return (body) => sql.begin((tx) => body(tx));
  },
  "postgres.js without prepared statements": async (t) => {
    const sql = openPostgres(t, { prepare: false });
    return (body) => sql.begin((tx) => body(tx));
  },
  "a function that gives rows": async (t) => {
    const client = new pg.Client({ connectionString: testUrl() });
    await client.connect();
    defer(t, () => client.end());
    const query = async (sql, params) => (await client.query(sql, params)).rows;
    return (body) => inside(client, () => body(query));
  },
  "a function that gives rows as arrays, in a result": async (t) => {
    const client = new pg.Client({ connectionString: testUrl() });
    await client.connect();
    defer(t, () => client.end());
    const query = (text, values) => client.query({ text, values, rowMode: "array" });
    return (body) => inside(client, () => body(query));
  },
};

function openPostgres(t, options = {}) {
  const sql = postgres(testUrl(), { max: 2, onnotice: () => {}, ...options });
  defer(t, () => sql.end());
  return sql;
}

async function inside(client, body) {
  await client.query("begin");
  try {
    const answer = await body();
    await client.query("commit");
    return answer;
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

for (const [name, open] of Object.entries(DRIVERS)) {
  test(`${name}: commit, rollback, batch, conflict`, async (t) => {
    const { queue } = await openQueue(t);
    const run = await open(t);

    const kept = await run(async (tx) => {
      const enqueued = await queue.enqueue("job", JOB, { tx, priority: 3 });
      assert.equal(await queue.get(enqueued), undefined, "before the commit nobody sees it");
      return enqueued;
    });
    assert.ok(kept instanceof Enqueued && !kept.replayed);
    const snapshot = await queue.get(kept);
    assert.deepEqual([snapshot.state, snapshot.priority, snapshot.payload], ["ready", 3, JOB]);

    const lost = await run(async (tx) => {
      throw await queue.enqueue("job", 1, { tx });
    }).catch((thrown) => thrown);
    assert.ok(lost instanceof Enqueued, inspect(lost));
    assert.equal(await queue.get(lost), undefined);

    const many = await run((tx) =>
      queue.enqueueMany([{ type: "a" }, { type: "b", payload: null, options: { delayMs: 60_000 } }], { tx }),
    );
    assert.deepEqual(await Promise.all(many.map(async (one) => (await queue.get(one)).type)), ["a", "b"]);

    const idempotencyKey = { key: "k" };
    const first = await run((tx) => queue.enqueue("keyed", 1, { tx, idempotencyKey }));
    const again = await run((tx) => queue.enqueue("keyed", 1, { tx, idempotencyKey }));
    assert.deepEqual([again.id, again.replayed], [first.id, true]);
    const conflict = await run((tx) => queue.enqueue("keyed", 2, { tx, idempotencyKey })).catch(
      (thrown) => thrown,
    );
    assert.ok(conflict instanceof IdempotencyConflictError, inspect(conflict));
    assert.deepEqual(
      [conflict.details.conflictingFields, conflict.details.existingId, conflict.details.code],
      [["payload"], first.id, undefined],
    );
    assert.match(conflict.cause.code, /^YD/);
    assert.equal(conflict.retryable, false);
  });
}

test("what is refused before the statement leaves the transaction usable", async (t) => {
  const { queue } = await openQueue(t);
  const run = await DRIVERS["node-postgres"](t);
  const kept = await run(async (tx) => {
    await assert.rejects(queue.enqueue("job", Number.NaN, { tx }), PayloadInvalidError);
    await assert.rejects(queue.enqueue("job", 1, { tx, maxAttempts: 0 }), InvalidArgumentError);
    await assert.rejects(queue.enqueue("", 1, { tx }), InvalidArgumentError);
    return queue.enqueue("job", 1, { tx });
  });
  assert.equal((await queue.get(kept)).state, "ready");
});

test("jobs of a run, and a predecessor in the same transaction", async (t) => {
  const { queue } = await openQueue(t);
  const open = await DRIVERS["postgres.js"](t);
  const run = await queue.startRun("order");
  const [charge, mail] = await open(async (tx) => {
    const first = await run.enqueue("charge", 1, { tx });
    return [first, await run.enqueue("mail", 1, { tx, after: { jobId: first, on: "succeeded" } })];
  });
  assert.deepEqual((await run.get()).jobIds, [charge.id, mail.id]);
  assert.equal((await queue.get(mail)).state, "blocked");
  const unknown = { jobId: "00000000-0000-7000-8000-000000000000", on: "failed" };
  await assert.rejects(
    open((tx) => run.enqueue("mail", 1, { tx, after: unknown })),
    NotFoundError,
  );
});

test("what is no transaction is refused by name, and a driver's own error stays its own", async (t) => {
  const { queue } = await openQueue(t);
  for (const tx of [1, "begin", {}, null, () => undefined, async () => [], async () => [{ enqueue: 1 }]]) {
    const error = await queue.enqueue("job", 1, { tx }).then(assert.fail, (thrown) => thrown);
    assert.ok(error instanceof InvalidArgumentError, inspect([tx, error]));
    assert.equal(error.details.field, "tx");
  }
  const own = new Error("the driver is tired");
  const tired = () => {
    throw own;
  };
  assert.equal(await queue.enqueue("job", 1, { tx: tired }).catch((thrown) => thrown), own);
  const client = new pg.Client({ connectionString: testUrl() });
  await client.connect();
  await client.end();
  const ended = await queue.enqueue("job", 1, { tx: client }).catch((thrown) => thrown);
  assert.match(ended.message, /closed/);
  assert.deepEqual((await queue.list()).jobs, []);
});
