process.on('exit', () => console.log('never'))
process.reallyExit(5)
