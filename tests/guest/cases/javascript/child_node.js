const { spawnSync, fork } = require('child_process')
const r = spawnSync(process.execPath, ['-e', 'console.log(process.argv, process.execArgv, process.env.NODE_OPTIONS, process.env.LD_PRELOAD, require("fs").readdirSync("/proc/self/fd").filter((f) => f > 900)); process.exit(3)', 'x'])
console.log(r.status, r.stdout.toString(), r.stderr.toString())
if (process.argv[2] !== 'child') fork(__filename, ['child']).on('exit', (c) => console.log('fork', c)).on('message', (m) => console.log(m)); else { process.send({ execArgv: process.execArgv }); process.disconnect() }
