import assert from "node:assert/strict";
import test from "node:test";
import { decisionFromResponse, httpDecision, InvalidArgumentError } from "drayhorse";

test("statuses, failures and options", () => {
  assert.equal(httpDecision({ status: 503 }).retryable, true);
  assert.equal(httpDecision({ status: 404 }).retryable, false);
  assert.equal(httpDecision({ failure: "not_sent" }).retryable, true);
  const cut = httpDecision({ failure: "after_send" }, { idempotent: false });
  assert.deepEqual([cut.retryable, cut.uncertain], [false, true]);
  assert.equal(httpDecision({ status: 409 }, { conflictMeansInProgress: true }).retryable, true);
  assert.throws(() => httpDecision({ status: 99 }), InvalidArgumentError);
  assert.throws(() => httpDecision({}), InvalidArgumentError);
});

test("headers in all their forms, repeated lines too", () => {
  const wait = (headers, more) => httpDecision({ status: 429 }, { headers, ...more }).retryAfterMs;
  assert.equal(wait({ "retry-after": "120" }), 120_000);
  assert.equal(wait({ "Retry-After": ["5", "7"] }), 7_000);
  assert.equal(
    wait([
      ["retry-after", "5"],
      ["Retry-After", " 9 "],
    ]),
    9_000,
  );
  assert.equal(
    wait(
      new Headers([
        ["retry-after", "5"],
        ["retry-after", "8"],
      ]),
    ),
    8_000,
  );
  assert.equal(wait({ "retry-after": undefined, "x-other": "y" }), undefined);
  for (const value of ["-1", "+3", "1.5", "1e3", "soon", "", "0"])
    assert.equal(wait({ "retry-after": value }), undefined);
  const now = new Date("2026-01-01T00:00:00Z");
  assert.equal(wait({ "retry-after": "Thu, 01 Jan 2026 00:01:30 GMT" }, { now }), 90_000);
});

test("a Response of fetch is enough", () => {
  const response = new Response("busy", { status: 503, headers: { "retry-after": "30" } });
  assert.deepEqual(decisionFromResponse(response), {
    retryable: true,
    uncertain: false,
    retryAfterMs: 30_000,
    reason: "the service is unavailable",
  });
  assert.equal(response.bodyUsed, false);
  const failed = decisionFromResponse(new Response(null, { status: 500 }), { idempotent: false });
  assert.deepEqual([failed.retryable, failed.uncertain], [false, true]);
});
