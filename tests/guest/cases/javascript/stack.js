function f() { console.log(new Error('here').stack); console.trace('trace') }
f()
Error.stackTraceLimit = 50
console.log(new Error('all').stack)
