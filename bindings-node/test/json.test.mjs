import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test from "node:test";
import vm from "node:vm";
import { InvalidArgumentError, PayloadInvalidError, PolicyInvalidError } from "drayhorse";

// The encoder is no part of the public surface.
const require = createRequire(import.meta.url);
const { decode, encodeArguments, encodePolicy, encodeValue } = require("../dist/json.js");

const refusedAt = (path, value, root = "payload") =>
  assert.throws(
    () => encodeValue(value, root),
    (error) => {
      assert.ok(error instanceof PayloadInvalidError, String(error));
      assert.equal(error.details.path, path);
      assert.ok(error.message.startsWith(`${path}: `), error.message);
      return true;
    },
  );

test("plain values are encoded as JSON.stringify does", () => {
  const values = [
    null,
    true,
    "",
    'a "quoted" \\ text\n\u2028é😀',
    0,
    -0,
    1.5,
    1e21,
    5e-324,
    [],
    {},
    [undefined, null, [1]],
    { a: undefined, b: null, "": 1, "a b": { c: [] } },
    Object.assign(Object.create(null), { x: 1 }),
    { toJSON: () => ({ y: 2 }) },
    new URL("http://example.org/"),
    Buffer.from("hi"),
    // biome-ignore lint/suspicious/noSparseArray: a hole is what is tested.
    [1, , 2],
  ];
  for (const value of values) assert.equal(encodeValue(value, "payload"), JSON.stringify(value));
});

test("a missing value stays missing", () => {
  assert.equal(encodeValue(undefined, "payload"), undefined);
  assert.equal(encodeArguments({ payload: undefined, x: 1 }), '{"x":1}');
});

test("a bigint keeps its digits in both directions", () => {
  assert.equal(
    encodeValue({ n: 1n, big: -123456789012345678901234567890n }, "payload"),
    '{"n":1,"big":-123456789012345678901234567890}',
  );
  const text =
    '{"id":1970670598291982290,"n":9007199254740993,"m":18446744073709551615,"safe":9007199254740991,' +
    '"neg":-9007199254740993,"f":0.12345678901234567,"e":1e30,"s":"12345678901234567890","__proto__":{"x":1}}';
  const value = decode(text);
  assert.deepEqual(
    { ...value },
    {
      id: 1970670598291982290n,
      n: 9007199254740993n,
      m: 18446744073709551615n,
      safe: 9007199254740991,
      neg: -9007199254740993n,
      f: 0.12345678901234566,
      e: 1e30,
      s: "12345678901234567890",
      ["__proto__"]: { x: 1 },
    },
  );
  assert.ok(Object.hasOwn(value, "__proto__"));
  assert.equal(decode('{"a":[1,null,"x"]}').a[0], 1);
});

test("what JSON would change silently is refused with its path", () => {
  refusedAt("payload", Number.NaN);
  refusedAt("payload.a[1].b", { a: [0, { b: Number.POSITIVE_INFINITY }] });
  refusedAt("payload.when", { when: new Date(0) });
  refusedAt('payload["a b"]', { "a b": new Map() });
  refusedAt("payload.s", { s: new Set() });
  refusedAt("payload[0]", [new (class Account {})()]);
  refusedAt("payload.f", { f() {} });
  refusedAt("payload.y", { y: Symbol("y") });
  refusedAt("payload.t", { t: "broken \ud800" });
  refusedAt('payload["\\udc00"]', { "\udc00": 1 });
  refusedAt("result", new Error("x"), "result");
});

test("nesting is bounded at 100 levels, and a value in itself ends there", () => {
  const nested = (levels) => {
    let value = [];
    for (let level = 1; level < levels; level++) value = [value];
    return value;
  };
  assert.equal(encodeValue(nested(100), "payload"), JSON.stringify(nested(100)));
  assert.throws(() => encodeValue(nested(101), "payload"), /nesting over 100/);
  const circle = {};
  circle.self = circle;
  assert.throws(() => encodeValue(circle, "payload"), PayloadInvalidError);
});

test("objects of another realm are plain, classes there are not", () => {
  assert.equal(encodeValue(vm.runInNewContext("({a: [1]})"), "payload"), '{"a":[1]}');
  assert.throws(() => encodeValue(vm.runInNewContext("new Map()"), "payload"), PayloadInvalidError);
});

test("toJSON is asked once, and may answer with the object itself", () => {
  class Self {
    x = 1;
    toJSON() {
      return this;
    }
  }
  assert.equal(encodeValue({ s: new Self() }, "payload"), '{"s":{"x":1}}');
});

test("arguments take times, and name the field they refuse", () => {
  assert.equal(encodeArguments({ runAt: new Date(0) }), '{"runAt":"1970-01-01T00:00:00.000Z"}');
  for (const options of [
    { runAt: new Date(Number.NaN) },
    { runAt: Number.NaN },
    { runAt: () => 1 },
    { runAt: null },
  ]) {
    assert.throws(
      () => encodeArguments({ options }),
      (error) => error instanceof InvalidArgumentError && error.details.field === "options.runAt",
    );
  }
});

test("a policy that is no JSON is a policy error", () => {
  assert.throws(
    () => encodePolicy({ type: "fixed", delayMs: Number.NaN }),
    (error) => error instanceof PolicyInvalidError && error.details.path === "retryPolicy.delayMs",
  );
});
