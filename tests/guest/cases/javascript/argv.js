console.log(process.argv, process.execArgv, process.argv0, process.execPath, process.title)
