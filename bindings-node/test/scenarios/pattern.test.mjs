// The runner's own judgement: a pattern that accepted everything would let every scenario pass.
import assert from "node:assert/strict";
import test from "node:test";
import { mismatch } from "./pattern.mjs";
import { plain, resolve } from "./values.mjs";

const accepts = (pattern, value) => assert.equal(mismatch(pattern, value), undefined);
const refuses = (pattern, value) => assert.equal(typeof mismatch(pattern, value), "string");

test("values match by content", () => {
  accepts({ a: 1 }, { a: 1, b: 2 });
  refuses({ a: 1 }, { b: 2 });
  refuses({ a: 1 }, [1]);
  refuses({}, null);
  accepts([1, { a: null }], [1, { a: null }]);
  refuses([1], [1, 2]);
  refuses(null, undefined);
  accepts(2, 2n);
  accepts(9007199254740993n, 9007199254740993n);
  refuses(9007199254740993n, 9007199254740992);
  refuses(1, "1");
  refuses(1, true);
});

test("operators", () => {
  accepts({ $any: true }, 0);
  refuses({ $any: true }, undefined);
  accepts({ a: { $absent: true } }, { a: null });
  refuses({ a: { $absent: true } }, { a: 0 });
  accepts({ $between: [1, 3] }, 3);
  refuses({ $between: [1, 3] }, 4);
  refuses({ $between: [1, 3] }, undefined);
  accepts({ $contains: [{ k: 1 }, { k: 3 }] }, [{ k: 1 }, { k: 2 }, { k: 3 }]);
  refuses({ $contains: [{ k: 3 }, { k: 1 }] }, [{ k: 1 }, { k: 2 }, { k: 3 }]);
  refuses({ $contains: [{ k: 1 }, { k: 1 }] }, [{ k: 1 }]);
  accepts({ $length: 2 }, [1, 2]);
  refuses({ $length: 2 }, undefined);
  accepts({ $match: "^a.c$" }, "abc");
  refuses({ $match: "^a.c$" }, 1);
  accepts({ $not: { a: 1 } }, { a: 2 });
  refuses({ $not: { a: { $any: true } } }, { a: 2 });
  assert.throws(() => mismatch({ $some: 1 }, 1), /no operator \$some/);
});

test("references and abbreviations", () => {
  const kept = new Map([["job", { id: "x", list: [{ n: 1 }] }]]);
  assert.deepEqual(resolve({ a: ["$job.id", "$$job", "$job.list.0"] }, kept), { a: ["x", "$job", { n: 1 }] });
  assert.equal(resolve({ $repeat: ["ab", 2] }, kept), "abab");
  assert.deepEqual(resolve({ $nest: 3 }, kept), [[[]]]);
  assert.deepEqual(resolve({ $match: "$" }, kept), { $match: "$" });
  assert.throws(() => resolve("$other.id", kept), /\$other\.id names no answer/);
  assert.throws(() => resolve("$job.name", kept), /\$job\.name is not in/);
  assert.deepEqual(plain({ at: new Date(0), n: 1n, none: undefined }), {
    at: "1970-01-01T00:00:00.000Z",
    n: 1n,
    none: null,
  });
});
