// ES modules beside the program, CommonJS modules, JSON, and builtin modules by name.
const data = require('./lib/data.json');
const { area } = require('./lib/shapes');

import('./lib/greet.mjs').then(async ({ default: greet, names, nested }) => {
  console.log(greet(names[0]), nested, data.colours.length, area(2).toFixed(4));
  const fs = await import('node:fs/promises');
  console.log(typeof fs.readFile, require('module').builtinModules.includes('fs'));
  await import('./lib/missing.mjs').catch((error) => console.log(error.code));
  try {
    require('no-such-package');
  } catch (error) {
    console.log(error.code);
  }
});
