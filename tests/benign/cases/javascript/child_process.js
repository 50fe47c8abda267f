// Child processes: exec, spawn with pipes, fork with messages, signals, errors.
const { execFileSync, execSync, fork, spawn, spawnSync } = require('child_process');

if (process.send) {
  process.on('message', (m) => process.send({ doubled: m.map((x) => x * 2) }, () => process.disconnect()));
} else {
  console.log(execSync('echo shell $((6*7))').toString().trim());
  console.log(execFileSync('sort', ['-r'], { input: 'a\nc\nb\n' }).toString().split('\n'));
  const failed = spawnSync('sh', ['-c', 'echo bad >&2; exit 3']);
  console.log(failed.status, failed.stderr.toString(), spawnSync('no-such-program').error.code);
  console.log(spawnSync('sleep', ['30'], { timeout: 50 }).signal);
  const cat = spawn('tr', ['a-z', 'A-Z']);
  let text = '';
  cat.stdout.on('data', (chunk) => { text += chunk; });
  cat.on('close', (code) => {
    console.log(text, code);
    const child = fork(__filename);
    child.on('message', (m) => console.log(m));
    child.on('exit', (exit) => console.log('child left with', exit));
    child.send([1, 2, 3]);
  });
  cat.stdin.end('shouted');
}
