const { execSync } = require('child_process')
console.log(execSync('ls /proc/self/fd | wc -l; cat', { input: 'in' }).toString())
