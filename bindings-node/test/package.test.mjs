// What `npm pack` puts into the archives: the compiled facade with its types, and nothing else.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as namespace from "drayhorse";

const root = fileURLToPath(new URL("..", import.meta.url));
const required = createRequire(import.meta.url)("drayhorse");
const LICENCES = ["LICENSE-APACHE", "LICENSE-MIT"];

async function packed(folder) {
  const { stdout } = await promisify(execFile)("npm", ["pack", "--dry-run", "--json"], { cwd: folder });
  return JSON.parse(stdout)[0].files.map(({ path }) => path);
}

test("every source has its module and its types in the archive, and nothing else is there", async () => {
  const compiled = readdirSync(join(root, "ts")).flatMap((source) => {
    const [, name, m] = /^(.+)\.(m?)ts$/.exec(source);
    return [`dist/${name}.${m}js`, `dist/${name}.d.${m}ts`];
  });
  const expected = ["package.json", "README.md", ...LICENCES, ...compiled];
  assert.deepEqual((await packed(root)).sort(), expected.sort());
});

test("both archives carry the licences of the repository", async () => {
  for (const platform of readdirSync(join(root, "npm"))) {
    const folder = join(root, "npm", platform);
    const files = await packed(folder);
    assert.deepEqual(
      files.filter((file) => file.startsWith("LICENSE")),
      LICENCES,
    );
    for (const licence of LICENCES) {
      const text = readFileSync(join(root, "..", licence), "utf8");
      for (const place of [root, folder]) assert.equal(readFileSync(join(place, licence), "utf8"), text);
    }
  }
});

test("import and require offer the same, by the same names", () => {
  const imported = { ...namespace };
  const names = Object.keys(required).sort();
  assert.deepEqual(
    Object.keys(imported)
      .filter((name) => name !== "default" && name !== "module.exports")
      .sort(),
    names,
  );
  for (const name of names) assert.equal(imported[name], required[name], name);
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  for (const system of ["import", "require"]) {
    for (const file of Object.values(exports["."][system]))
      assert.ok(readFileSync(join(root, file)).length > 0);
  }
});
