process.on('beforeExit', (c) => console.log('beforeExit', c))
process.on('exit', (c) => console.log('exit', c, process.exitCode))
process.on('exit', () => { process.exitCode = 9 })
console.log('main')
