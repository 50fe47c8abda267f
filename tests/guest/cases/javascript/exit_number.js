console.log('out')
process.exit(3)
