process.on('exit', () => process.exit(6))
