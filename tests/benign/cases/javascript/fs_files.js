// The file system, synchronously: write, read, list, rename, link, watch stats, remove.
const fs = require('fs');
const path = require('path');

fs.mkdirSync('tree/a/b', { recursive: true });
for (const [name, text] of [['one', '1'], ['a/two', 'dvě\n'], ['a/b/three', 'x'.repeat(5000)]]) {
  fs.writeFileSync(path.join('tree', name), text);
}
fs.appendFileSync('tree/one', ' and more');
fs.copyFileSync('tree/one', 'tree/copy');
fs.renameSync('tree/copy', 'tree/a/renamed');
fs.symlinkSync('one', 'tree/link');
const list = (dir) => fs.readdirSync(dir, { withFileTypes: true })
  .sort((x, y) => (x.name < y.name ? -1 : 1))
  .flatMap((e) => (e.isDirectory() ? list(path.join(dir, e.name)) : [path.join(dir, e.name)]));
for (const name of list('tree')) console.log(name, fs.statSync(name).size, fs.lstatSync(name).isSymbolicLink());
const fd = fs.openSync('tree/one', 'r+');
fs.writeSync(fd, 'ONE', 0);
const buffer = Buffer.alloc(6);
fs.readSync(fd, buffer, 0, 6, 0);
fs.ftruncateSync(fd, 4);
fs.closeSync(fd);
console.log(buffer.toString(), fs.readFileSync('tree/link', 'utf8'));
try {
  fs.readFileSync('tree/missing');
} catch (error) {
  console.log(error.code, error.syscall, error.message);
}
fs.rmSync('tree', { recursive: true });
const scratch = fs.mkdtempSync('/tmp/benign-');
fs.rmdirSync(scratch);
console.log(fs.existsSync('tree'), scratch.length);
