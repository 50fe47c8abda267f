import('./lib.mjs').then((m) => console.log(m.default))
