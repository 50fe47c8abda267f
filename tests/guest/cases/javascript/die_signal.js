console.log('x')
process.kill(process.pid, 'SIGTERM')
setTimeout(() => {}, 1000)
