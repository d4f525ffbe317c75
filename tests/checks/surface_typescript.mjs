// The public surface of a declaration file, for surface.py: surface_typescript.mjs NODE_PACKAGE prints
// {"Queue.enqueue": {"type": "…", "required": true}, "Queue.wait(timeoutMs)": …} of `dist/index.d.ts`.
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const folder = resolve(process.argv[2]);
const ts = createRequire(join(folder, "package.json"))("typescript");
const dist = join(folder, "dist");
const entry = join(dist, "index.d.ts");
const program = ts.createProgram([entry], {
  strict: true,
  noEmit: true,
  module: ts.ModuleKind.Node16,
  moduleResolution: ts.ModuleResolutionKind.Node16,
  target: ts.ScriptTarget.ES2022,
});
const checker = program.getTypeChecker();
const source = program.getSourceFile(entry);
if (!source) throw new Error(`${entry} is missing: build the package first`);

const found = {};
const resolved = (symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol);
const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(source)).map(resolved);
const isOurs = (symbol) => symbol.declarations?.some((d) => d.getSourceFile().fileName.startsWith(dist)) ?? false;

/** `required`: the name is one of those that the table has to list. */
function note(name, type, required) {
  found[name] ??= { type: checker.typeToString(type), required };
}

/** The members of an unnamed object type, or of such elements of an array; nothing for a type that has a name. */
function unnamed(type) {
  const plain = checker.getNonNullableType(type);
  const one = checker.isArrayType(plain) ? checker.getTypeArguments(plain)[0] : plain;
  const isLiteral = (one.symbol?.flags ?? 0) & ts.SymbolFlags.TypeLiteral && !one.aliasSymbol;
  return isLiteral ? checker.getPropertiesOfType(one) : [];
}

/** Parameters are named like `Queue.wait(timeoutMs)`; the members of an unnamed object stand for it. */
function parameters(owner, signature) {
  for (const parameter of signature.parameters) {
    const type = checker.getTypeOfSymbol(parameter);
    const inside = unnamed(type);
    for (const member of inside) note(`${owner}(${member.name})`, checker.getTypeOfSymbol(member), true);
    if (inside.length === 0) note(`${owner}(${parameter.name})`, type, false);
  }
}

function isHidden(member) {
  const declaration = member.declarations?.[0];
  if (!declaration || !isOurs(member) || member.name === "prototype" || member.name.startsWith("__@")) return true;
  if (declaration.name && ts.isPrivateIdentifier(declaration.name)) return true;
  return (ts.getCombinedModifierFlags(declaration) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) !== 0;
}

function members(owner, type) {
  for (const member of checker.getPropertiesOfType(type)) {
    if (isHidden(member)) continue;
    // What another exported type brings in is listed there.
    const { parent } = member.declarations[0];
    const from = checker.getSymbolAtLocation(parent.name ?? parent);
    if (from && from.name !== owner && exported.includes(from)) continue;
    const own = checker.getTypeOfSymbol(member);
    note(`${owner}.${member.name}`, own, true);
    for (const signature of own.getCallSignatures()) parameters(`${owner}.${member.name}`, signature);
    for (const inner of unnamed(own)) note(`${owner}.${member.name}.${inner.name}`, checker.getTypeOfSymbol(inner), true);
  }
}

for (const symbol of exported) {
  const { name, flags } = symbol;
  if (flags & ts.SymbolFlags.Class) {
    note(name, checker.getTypeOfSymbol(symbol), true);
    members(name, checker.getDeclaredTypeOfSymbol(symbol));
    members(name, checker.getTypeOfSymbol(symbol));
    for (const made of checker.getTypeOfSymbol(symbol).getConstructSignatures()) parameters(name, made);
  } else if (flags & ts.SymbolFlags.Interface) {
    members(name, checker.getDeclaredTypeOfSymbol(symbol));
  } else if (flags & ts.SymbolFlags.Function) {
    note(name, checker.getTypeOfSymbol(symbol), true);
    for (const signature of checker.getTypeOfSymbol(symbol).getCallSignatures()) parameters(name, signature);
  } else if (flags & ts.SymbolFlags.Variable) {
    note(name, checker.getTypeOfSymbol(symbol), true);
  }
}
console.log(JSON.stringify(found));
