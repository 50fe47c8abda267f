// Half a megabyte through the console, then some of it by raw writes.
for (let n = 0; n < 10000; n++) console.log(`${String(n).padStart(6, '0')} ${'='.repeat(n % 90)}`);
for (let n = 0; n < 500; n++) process.stderr.write(`warning ${n}\n`);
process.stdout.write('x'.repeat(5000) + '\n', () => console.log('flushed'));
