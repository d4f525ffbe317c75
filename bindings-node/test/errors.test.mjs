import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test from "node:test";
import * as drayhorse from "drayhorse";

const require = createRequire(import.meta.url);
const { native } = require("../dist/native.js");
const { errorFrom } = require("../dist/errors.js");

test("every code of the error table has its class, with its retryability and a cause", () => {
  const table = JSON.parse(native.errorTable());
  const exported = new Map(Object.entries(drayhorse));
  assert.ok(table.length > 0);
  assert.deepEqual(Object.keys(drayhorse.errorClasses).sort(), table.map((row) => row.code).sort());
  for (const { code, retryable, cause } of table) {
    const name = `${code.replace(/(^|_)([a-z])/g, (_, __, letter) => letter.toUpperCase())}Error`;
    const Class = drayhorse.errorClasses[code];
    assert.equal(exported.get(name), Class, `${name} is exported`);
    const text = JSON.stringify({ code, number: 1, message: "said", retryable, details: { field: "x" } });
    const error = errorFrom(text);
    assert.ok(error instanceof Class && error instanceof drayhorse.DrayhorseError && error instanceof Error);
    assert.deepEqual(
      { code: error.code, name: error.name, message: error.message, retryable: error.retryable },
      { code, name, message: "said", retryable },
    );
    assert.deepEqual(error.details, { field: "x" });
    assert.equal(error.cause, cause);
  }
});

test("import and require give the same classes", () => {
  const required = require("drayhorse");
  assert.deepEqual(Object.keys(required).sort(), Object.keys(drayhorse).sort());
  for (const [name, value] of Object.entries(drayhorse)) assert.equal(required[name], value, name);
});
