process.on('SIGUSR2', (s) => { console.log('got', s); clearInterval(t) })
const t = setInterval(() => {}, 1000)
process.kill(process.pid, 'SIGUSR2')
