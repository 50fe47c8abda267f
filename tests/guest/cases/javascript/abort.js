process.abort()
