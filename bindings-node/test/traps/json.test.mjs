/** T22, T23: what cannot be stored never leaves a job running, and integers keep their digits. */
import assert from "node:assert/strict";
import test from "node:test";
import { openQueue, runWorker } from "../support.mjs";

const now = { retryPolicy: { type: "fixed", delayMs: 0 }, maxAttempts: 2 };

test("T22: errors with NUL, with half a character, or of 5 MB are recorded, and the job ends on time", async (t) => {
  const { queue } = await openQueue(t);
  runWorker(t, queue, {
    job: (text, job) => {
      if (text === "long") throw new Error("x".repeat(5_000_000));
      if (text === "half") throw new Error("half \ud83d");
      if (text === "name") throw Object.assign(new Error("named"), { name: "N\u0000" });
      if (text === "thrown") throw { odd: 1 };
      throw new Error(`bad \u0000 byte ${job.attempt}`);
    },
  });
  const check = async (payload, message) => {
    const outcome = await queue.wait(await queue.enqueue("job", payload, now), 20_000);
    assert.deepEqual([outcome.state, outcome.attempt], ["failed", 2]);
    assert.match(outcome.error.message, message);
    return outcome;
  };
  await check("nul", /^bad \ufffd byte 2$/);
  await check("half", /^half \ufffd$/);
  await check("thrown", /odd: 1/);
  assert.equal((await check("name", /^named$/)).error.name, "N\ufffd");
  const { error } = await check("long", /^x+/);
  assert.ok(error.message.length < 200_000);
});

test("T22: a result that cannot be stored ends the job at once, uncertain, with the reason", async (t) => {
  const { queue } = await openQueue(t);
  const circle = {};
  circle.self = circle;
  const results = {
    nul: { out: "POZ\u0000" },
    nan: { n: Number.NaN },
    date: new Date(),
    half: "\udc00",
    circle,
    large: "x".repeat(1_100_000),
  };
  runWorker(t, queue, { job: (name) => results[name] });
  for (const name of Object.keys(results)) {
    const job = await queue.enqueue("job", name, now);
    const outcome = await queue.wait(job, 20_000);
    assert.deepEqual(
      [outcome.state, outcome.attempt, outcome.reason, outcome.uncertain],
      ["failed", 1, "output", true],
      name,
    );
    assert.match(outcome.error.message, /result/, name);
  }
});

test("T22: a checkpoint that cannot be stored fails the attempt like any error", async (t) => {
  const { queue } = await openQueue(t);
  runWorker(t, queue, {
    job: (text, job) => job.checkpoint("c", () => text.replace("NUL", "\u0000").replace("HALF", "\ud800")),
  });
  for (const text of ["a NUL", "a HALF"]) {
    const outcome = await queue.wait(await queue.enqueue("job", text, now), 20_000);
    assert.deepEqual(
      [outcome.state, outcome.attempt, outcome.error.name],
      ["failed", 2, "PayloadInvalidError"],
    );
  }
});

test("T23: integers beyond 2^53 keep their digits on every hop", async (t) => {
  const { queue } = await openQueue(t);
  const big = {
    id: 1970670598291982290n,
    n: 9007199254740993n,
    m: 18446744073709551615n,
    e: 123456789012345678901234567890n,
    negative: -9007199254740993n,
    small: 1n,
  };
  // What fits a number comes back as one.
  const back = { ...big, small: 1 };
  const types = [];
  runWorker(t, queue, {
    job: async (payload, job) => {
      types.push(typeof payload.id);
      assert.deepEqual(await job.checkpoint("c", () => payload), back);
      if (job.attempt === 1) throw new Error("again");
      return payload;
    },
  });
  const job = await queue.enqueue("job", big, now);
  const outcome = await queue.wait(job, 20_000);
  assert.deepEqual(outcome.result, back);
  assert.deepEqual((await queue.get(job)).payload, back);
  assert.deepEqual((await queue.list({}, { payload: true })).jobs[0].result, back);
  assert.deepEqual(types, ["bigint", "bigint"]);
  const [claim] = await (async () => {
    await queue.enqueue("other", [9007199254740993n, 2 ** 53, 0.1]);
    return queue.claim({ handlers: [{ type: "other" }] });
  })();
  assert.deepEqual(claim.payload, [9007199254740993n, 9007199254740992n, 0.1]);
});
