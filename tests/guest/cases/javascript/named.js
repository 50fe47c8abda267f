console.log(process.argv.slice(1), __filename, require.main.filename)
require('./beside')
throw new Error('x')
