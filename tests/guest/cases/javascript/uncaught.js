process.on('uncaughtException', (e, origin) => { console.log('caught', e.message, origin); process.exit(8) })
throw new Error('x')
