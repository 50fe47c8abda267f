// Standard input by lines, with the readline module.
const readline = require('readline');

(async () => {
  const sums = new Map();
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [name, value] = line.split(/\s*=\s*/);
    sums.set(name, (sums.get(name) ?? 0) + Number(value));
  }
  for (const [name, sum] of [...sums].sort()) console.log(name, sum);
})();
