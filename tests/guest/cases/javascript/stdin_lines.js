const r = require('readline').createInterface({ input: process.stdin })
r.on('line', (l) => console.log('line', l)).on('close', () => console.log('closed'))
