console.log(__filename)
