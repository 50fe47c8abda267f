process.emitWarning('one', 'DeprecationWarning', 'DEP0'); new Buffer(1)
process.on('warning', (w) => console.log(w.name))
