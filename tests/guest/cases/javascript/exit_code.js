process.exitCode = 4
setTimeout(() => console.log('later'), 5)
