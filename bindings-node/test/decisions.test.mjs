import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test from "node:test";
import { CheckpointConflictError, NonRetryableError, RetryableError } from "drayhorse";

const require = createRequire(import.meta.url);
const { chainOf, decide, decisionOfChain, isCancellation } = require("../dist/decisions.js");
const { describe } = require("../dist/failure.js");
const { failed, succeeded, workerDelay } = require("../dist/report.js");

const wrapped = (cause, depth = 1) => {
  let error = cause;
  for (let level = 0; level < depth; level++) error = new Error(`wrap ${level}`, { cause: error });
  return error;
};
const silent = () => assert.fail("onError was told");

test("the outermost of our errors on the chain decides", () => {
  assert.equal(decisionOfChain(new Error("x")), undefined);
  assert.deepEqual(decisionOfChain(wrapped(new NonRetryableError("no"))), {
    retryable: false,
    uncertain: false,
  });
  assert.deepEqual(decisionOfChain(new NonRetryableError("no", { uncertain: true })), {
    retryable: false,
    uncertain: true,
  });
  assert.deepEqual(decisionOfChain(wrapped(new RetryableError("later", 5_000))), {
    retryable: true,
    retryAfterMs: 5_000,
  });
  const both = new RetryableError("later", 1, { cause: new NonRetryableError("no") });
  assert.equal(decisionOfChain(wrapped(both)).retryable, true);
  assert.deepEqual(decisionOfChain(new CheckpointConflictError("other value")), { retryable: false });
});

test("an AggregateError is read in pre-order", () => {
  const group = new AggregateError([
    new Error("a", { cause: new RetryableError("first", 7) }),
    new NonRetryableError("second"),
  ]);
  assert.equal(decisionOfChain(wrapped(group)).retryAfterMs, 7);
  assert.deepEqual(
    chainOf(new AggregateError([1, wrapped(2)], "g", { cause: 3 })).map((link) => link.message ?? link),
    ["g", 3, 1, "wrap 0", 2],
  );
  // Only the explicit chain counts, not a list that happens to be called errors.
  assert.equal(
    decisionOfChain(Object.assign(new Error("x"), { errors: [new NonRetryableError("n")] })),
    undefined,
  );
});

test("depth 32 is the end, and a cycle is no loop", () => {
  assert.equal(decisionOfChain(wrapped(new NonRetryableError("deep"), 31)).retryable, false);
  assert.equal(decisionOfChain(wrapped(new NonRetryableError("too deep"), 32)), undefined);
  const one = new Error("one");
  one.cause = new Error("two", { cause: one });
  assert.equal(decisionOfChain(one), undefined);
  assert.equal(describe(one).causes.length, 1);
});

test("classifiers are asked in order; nonsense and throws leave the job retryable and are told", () => {
  const job = { id: "j" };
  const no = () => ({ retryable: false });
  assert.equal(decide(new Error("x"), job, [undefined, no], silent).retryable, false);
  assert.equal(decide(new Error("x"), job, [() => undefined, no], silent).retryable, false);
  assert.equal(
    decide(new NonRetryableError("x"), job, [() => ({ retryable: true })], silent).retryable,
    false,
  );
  for (const classify of [
    () => "nonsense",
    () => null,
    async () => ({ retryable: false }),
    () => Promise.reject(1),
    () => ({}),
    () => {
      throw new Error("bug");
    },
  ]) {
    const told = [];
    assert.deepEqual(
      decide(new Error("x"), job, [classify, no], (error) => told.push(error)),
      { retryable: true },
    );
    assert.equal(told.length, 1);
  }
});

test("anything thrown can be described", () => {
  assert.deepEqual(describe("text"), { name: "NonError", message: "text" });
  assert.deepEqual(describe(undefined), { name: "NonError", message: "undefined" });
  assert.equal(describe({ status: 404 }).message, "{ status: 404 }");
  assert.equal(describe(new Error("broken \ud800")).message, "broken \ufffd");
  assert.equal(describe(new Error("a \u0000 byte")).message, "a \u0000 byte");
  const hostile = new Error("x");
  Object.defineProperty(hostile, "message", {
    get: () => {
      throw new Error("trap");
    },
  });
  Object.defineProperty(hostile, "cause", {
    get: () => {
      throw new Error("trap");
    },
  });
  assert.equal(describe(hostile).name, "Error");
  const uninspectable = new Proxy(
    {},
    {
      get: () => {
        throw new Error("trap");
      },
    },
  );
  assert.equal(describe(uninspectable).name, "NonError");
  const stored = describe(wrapped(new TypeError("inner")));
  assert.deepEqual(stored.causes, [{ name: "TypeError", message: "inner" }]);
  assert.match(stored.stack, /wrapped/);
});

test("a cancellation is known by its name, wrapped or not", () => {
  const aborted = AbortSignal.abort().reason;
  assert.ok(isCancellation(aborted) && isCancellation(wrapped(aborted)));
  assert.ok(!isCancellation(new Error("x")));
});

test("a result without a JSON form is an output failure", () => {
  assert.equal(succeeded(3, undefined), '{"handle":3,"verb":"complete"}');
  assert.equal(
    succeeded(3, { n: 9007199254740993n }),
    '{"handle":3,"verb":"complete","result":{"n":9007199254740993}}',
  );
  const report = JSON.parse(succeeded(3, { when: new Date() }));
  assert.equal(report.outputFailure, true);
  assert.equal(report.error.name, "PayloadInvalidError");
});

test("a hint crosses raw, whatever it is", () => {
  const hint = (retryAfterMs) =>
    JSON.parse(failed(1, new Error("x"), { retryable: true, retryAfterMs }, {})).retryAfterMs;
  assert.equal(hint(undefined), undefined);
  assert.equal(hint(1.5), 1.5);
  assert.equal(hint(-1), -1);
  assert.equal(hint(Number.NaN), "NaN");
  assert.equal(hint("soon"), "soon");
  assert.equal(hint(null), "null");
  assert.ok(hint(Number.POSITIVE_INFINITY) > 86_400_000);
});

test("the worker's own delay is a number, nothing, or refused", () => {
  const job = { attempt: 2 };
  assert.deepEqual(workerDelay(undefined, job, silent), {});
  assert.deepEqual(workerDelay(0, job, silent), { workerDelayMs: 0 });
  assert.deepEqual(
    workerDelay((attempt) => attempt * 10, job, silent),
    { workerDelayMs: 20 },
  );
  assert.deepEqual(
    workerDelay(() => undefined, job, silent),
    {},
  );
  for (const option of [
    () => null,
    () => Number.NaN,
    async () => 5,
    () => Promise.reject(1),
    () => "5",
    () => {
      throw new Error("bug");
    },
  ]) {
    const told = [];
    const delay = workerDelay(option, job, (error) => told.push(error));
    assert.equal(typeof delay.overrideRefused, "string");
    assert.equal(delay.workerDelayMs, undefined);
    assert.equal(told.length, 1);
  }
});
