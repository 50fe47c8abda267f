// What programs ask of the machine.
const os = require('os');
const { performance } = require('perf_hooks');

console.log(os.platform(), os.EOL === '\n', os.endianness(), os.tmpdir(), os.homedir());
console.log(os.cpus().length >= 1, os.totalmem() > os.freemem(), os.loadavg().length, os.uptime() > 0, os.hostname().length > 0);
console.log(os.constants.signals.SIGTERM, os.release().split('.').length >= 2);
console.log(process.memoryUsage().rss > 1e6, process.uptime() > 0, process.hrtime.bigint() > 0n, process.resourceUsage().maxRSS > 0);
console.log(process.stdin.isTTY, process.stdout.isTTY, process.stdout.columns, process.title.length > 0, process.umask().toString(8));
console.log(performance.now() > 0, process.getuid() === process.geteuid(), process.arch.length > 0, os.availableParallelism() >= 1);
console.log(Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20));
const start = performance.now();
let x = 0;
for (let i = 0; i < 3e7; i++) x = (x * 31 + i) | 0;
console.log(x, performance.now() > start);
