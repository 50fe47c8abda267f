// Signals: handled, sent to a child, and the one that ends us.
const { spawn } = require('child_process');

let heard = 0;
process.on('SIGUSR2', () => {
  heard++;
  const child = spawn('sleep', ['60']);
  child.on('exit', (code, signal) => {
    console.log(heard, code, signal);
    process.kill(process.pid, 'SIGTERM');
    setTimeout(() => console.log('never'), 5000);
  });
  child.kill('SIGINT');
});
process.kill(process.pid, 'SIGUSR2');
setTimeout(() => {}, 10000);
