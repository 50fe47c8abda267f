function f() { throw new TypeError('no') }
f()
