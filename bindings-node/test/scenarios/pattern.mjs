/** The patterns of scenarios: `mismatch` says where a value differs from one, and how. */
import { show } from "./values.mjs";

const OPERATORS = {
  $any: (_, value) => value !== undefined && value !== null,
  $absent: (_, value) => value === undefined || value === null,
  $between: ([low, high], value) => value >= low && value <= high,
  $contains: (patterns, value) => Array.isArray(value) && hasInOrder(patterns, value),
  $length: (length, value) => value?.length === Number(length),
  $match: (expression, value) => typeof value === "string" && new RegExp(expression, "u").test(value),
  $not: (pattern, value) => mismatch(pattern, value) !== undefined,
};

/** Where `value` does not match `pattern`, as a sentence; `undefined` when it does. */
export function mismatch(pattern, value, path = "answer") {
  const wrong = () => `${path} should be ${show(pattern)}, is ${show(value)}`;
  if (Array.isArray(pattern)) {
    if (!Array.isArray(value) || value.length !== pattern.length) return wrong();
    return first(pattern.map((item, index) => () => mismatch(item, value[index], `${path}[${index}]`)));
  }
  if (typeof pattern !== "object" || pattern === null) return equal(pattern, value) ? undefined : wrong();
  const [name, operand] = Object.entries(pattern)[0] ?? [];
  if (name?.startsWith("$")) {
    if (!(name in OPERATORS)) throw new Error(`there is no operator ${name}`);
    return OPERATORS[name](operand, value) ? undefined : wrong();
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return wrong();
  return first(
    Object.entries(pattern).map(
      ([key, item]) =>
        () =>
          mismatch(item, value[key], `${path}.${key}`),
    ),
  );
}

function first(checks) {
  for (const check of checks) {
    const found = check();
    if (found !== undefined) return found;
  }
  return undefined;
}

function equal(expected, value) {
  if (typeof expected === "bigint" || typeof value === "bigint") {
    const isNumber = (side) => typeof side === "bigint" || typeof side === "number";
    // By value: 2n is 2.
    // biome-ignore lint/suspicious/noDoubleEquals: of a number and a bigint only == compares values.
    return isNumber(expected) && isNumber(value) && expected == value;
  }
  return expected === value;
}

function hasInOrder(patterns, values) {
  let at = 0;
  for (const pattern of patterns) {
    while (at < values.length && mismatch(pattern, values[at]) !== undefined) at += 1;
    if (at === values.length) return false;
    at += 1;
  }
  return true;
}
