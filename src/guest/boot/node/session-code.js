// session-code - what a step's text becomes, so that its names outlive it.
//
// A file's names end with the file.  A step's are properties of the global object: `let`, `const`
// and `class` at its top level are declared as by `var`, so that a later step sees them and may
// declare them again (and may assign to what was `const`).  A step that awaits, imports or returns
// becomes the body of an async function whose declarations are assignments; its functions are
// declared by a script of their own.  Whatever is taken away leaves blanks: lines, and mostly
// columns, stay as written.
'use strict';
const vm = require('vm');

const { Object } = globalThis; // the program may put another there
const OPEN = '(async () => {', CLOSE = '\n})';
const IMPORT = '__import__'; // vm's scripts cannot import: this global can
const SCOPES = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression',
  'PropertyDefinition', 'StaticBlock']);

// Node has a parser, for its REPL, but lets only the source of it out.
const loadParser = () => {
  const source = process.binding('natives')['internal/deps/acorn/acorn/dist/acorn'];
  const module = { exports: {} };
  vm.compileFunction(source, ['module', 'exports'])(module, module.exports);
  return module.exports;
};
const { parse } = loadParser();

// ---- looking at it ---------------------------------------------------------------------------

const childrenOf = (node) => Object.values(node).flat()
  .filter((child) => child !== null && typeof child === 'object' && typeof child.type === 'string');

// Everything, with what it is directly in and whether that is at the top level, in no function.
const walk = (node, visit, parent = null, isTop = true) => {
  visit(node, parent, isTop);
  const isTopBelow = isTop && !SCOPES.has(node.type);
  for (const child of childrenOf(node)) walk(child, visit, node, isTopBelow);
};

const namesIn = (pattern) => {
  switch (pattern?.type) {
    case 'Identifier': return [pattern.name];
    case 'ObjectPattern': return pattern.properties.flatMap(namesIn);
    case 'ArrayPattern': return pattern.elements.flatMap(namesIn);
    case 'Property': return namesIn(pattern.value);
    case 'AssignmentPattern': return namesIn(pattern.left);
    case 'RestElement': return namesIn(pattern.argument);
    default: return [];
  }
};

const declaredBy = (node) => {
  switch (node.type) {
    case 'VariableDeclaration': return node.declarations.flatMap(({ id }) => namesIn(id));
    case 'ClassDeclaration': return [node.id.name];
    case 'ImportDeclaration': return node.specifiers.map(({ local }) => local.name);
    default: return [];
  }
};

const isLexical = (node) => node.type === 'ClassDeclaration' || node.type === 'ImportDeclaration' ||
  (node.type === 'VariableDeclaration' && (node.kind === 'let' || node.kind === 'const'));

const look = (program) => {
  const found = { fresh: [], kept: [], waits: false, vars: [], imports: [] };
  for (const node of program.body) {
    if (isLexical(node)) found.fresh.push(...declaredBy(node));
  }
  walk(program, (node, parent, isTop) => {
    if (node.type === 'ImportExpression') found.imports.push(node);
    if (!isTop) return;
    if (node.type === 'VariableDeclaration' && node.kind === 'var') {
      found.vars.push([node, parent]);
      found.kept.push(...declaredBy(node));
    }
    found.waits ||= node.type === 'AwaitExpression' || node.type === 'ReturnStatement' ||
      node.type === 'ImportDeclaration' || (node.type === 'ForOfStatement' && node.await);
  });
  return found;
};

// ---- changing it -----------------------------------------------------------------------------

const blank = (text) => text.replace(/[^\n\r\u2028\u2029]/g, ' ');

// `edits` are [from, to, text], which do not overlap.
const apply = (code, edits) => {
  let at = 0, text = '';
  for (const [from, to, instead] of edits.sort((a, b) => a[0] - b[0] || a[1] - b[1])) {
    text += code.slice(at, from) + instead;
    at = to;
  }
  return text + code.slice(at);
};

const endOf = (code, node) => (code[node.end - 1] === ';' ? node.end - 1 : node.end);

const asVar = (node) => {
  if (node.type === 'ClassDeclaration') {
    return [[node.start, node.start, `var ${node.id.name}=`], [node.end, node.end, ';']];
  }
  return [[node.start, node.start + node.kind.length, 'var'.padEnd(node.kind.length)]];
};

const asAssignment = (code, node, parent) => {
  const keyword = [node.start, node.start + node.kind?.length];
  if (/^For(In|Of)/.test(parent.type) && parent.left === node) return [[...keyword, '']];
  const edits = node.declarations.flatMap(({ start, end, init }) => [
    [start, start, '('], [end, end, init || node.kind === 'var' ? ')' : ' = void 0)']]);
  if (parent.type === 'ForStatement' && parent.init === node) return [[...keyword, ''], ...edits];
  return [[...keyword, 'void '], ...edits, [endOf(code, node), node.end, ';']];
};

const asImport = (code, { start, end, source, specifiers }) => {
  const rest = code.slice(source.end, end);
  const [, word, attributes] = /^\s*(with|assert)\s*(\{.*\})/s.exec(rest) ?? [];
  const from = `await ${IMPORT}(${source.raw}${word ? `, { ${word}: ${attributes} }` : ''})`;
  const parts = specifiers.map(({ type, local, imported }) => {
    if (type === 'ImportNamespaceSpecifier') return `${local.name} = ${from}`;
    return `({ ${imported ? imported.raw ?? imported.name : 'default'}: ${local.name} } = ${from})`;
  });
  const lines = code.slice(start, end).replace(/[^\n]/g, '');
  return [[start, end, `void (${parts.join(', ') || from});${lines}`]];
};

const asReturn = (code, node) => [[node.start, node.start, 'return ('],
  [endOf(code, node), node.end, ');']];

const toScript = (code, program) => apply(code, program.body.filter(isLexical).flatMap(asVar));

const toBody = (code, program, { vars }, last) => {
  const edits = vars.flatMap(([node, parent]) => asAssignment(code, node, parent));
  for (const node of program.body) {
    if (node.type === 'FunctionDeclaration') {
      edits.push([node.start, node.end, blank(code.slice(node.start, node.end))]);
    } else if (node.type === 'ClassDeclaration') {
      edits.push([node.start, node.start, `${node.id.name}=`], [node.end, node.end, ';']);
    } else if (node.type === 'ImportDeclaration') {
      edits.push(...asImport(code, node));
    } else if (isLexical(node)) {
      edits.push(...asAssignment(code, node, program));
    }
  }
  if (last) edits.push(...asReturn(code, last));
  return OPEN + apply(code, edits) + CLOSE;
};

const toFunctions = (code, program) => {
  let at = 0, text = '';
  for (const { type, directive, start, end } of program.body) {
    if (type !== 'FunctionDeclaration' && !directive) continue;
    text += blank(code.slice(at, start)) + code.slice(start, end);
    at = end;
  }
  return text + blank(code.slice(at));
};

// ---- all of it -------------------------------------------------------------------------------

const OPTIONS = { ecmaVersion: 'latest', allowAwaitOutsideFunction: true,
  allowImportExportEverywhere: true, allowHashBang: true };

// `{ a: 1 }` is meant as an object where it can be one, as in Node's REPL.
const asObject = (code) => {
  if (!/^\s*\{/.test(code) || /;\s*$/.test(code)) return null;
  try {
    parse(`(${code}\n)`, OPTIONS);
    return `(${code}\n)`;
  } catch {
    return null;
  }
};

// What V8 says of a mistake is the better text; and it may know what the parser does not.
const compileAsIs = (code, make) => {
  try {
    return { scripts: [make(code, 0)], isBody: false };
  } catch (error) {
    if (!/\bawait\b/.test(code)) throw error;
    return { scripts: [make(OPEN + code + CLOSE, OPEN.length)], isBody: true };
  }
};

const understand = (code, options) => {
  const program = parse(code, options);
  const found = look(program);
  if (found.imports.length === 0) return { code, program, found };
  const edits = found.imports.map(({ start }) => [start, start + 'import'.length, IMPORT]);
  return understand(apply(code, edits), options);
};

// The scripts to run one after the other.  The last one's value is the step's, if it `hasValue`, or
// with `isBody` a function that gives it.  `fresh` are names to begin as undefined, `kept` those
// that must only exist.
const compile = (text, filename, mode) => {
  const object = mode === 'cell' ? asObject(text) : null;
  const shift = object ? 1 : 0;
  const make = (source, more) => new vm.Script(source, { filename, columnOffset: -(shift + more) });
  const written = (object ?? text).replace(/^#!.*/, blank);
  let step;
  try {
    step = understand(written, { ...OPTIONS, allowReturnOutsideFunction: mode === 'function' });
  } catch {
    return { ...compileAsIs(written, make), fresh: [], kept: [], hasValue: mode === 'cell' };
  }
  const { code, program, found } = step;
  const end = program.body.filter(({ type }) => type !== 'EmptyStatement').pop();
  const last = mode === 'cell' && end?.type === 'ExpressionStatement' ? end : null;
  if (!found.waits) {
    const scripts = [make(toScript(code, program), 0)];
    return { ...found, scripts, isBody: false, hasValue: last !== null };
  }
  const scripts = [make(toFunctions(code, program), 0),
    make(toBody(code, program, found, last), OPEN.length)];
  return { ...found, scripts, isBody: true, hasValue: true };
};

module.exports = { compile, IMPORT };
