console.log(process.env.NODE_OPTIONS, process.execArgv)
process.emitWarning('seen')
