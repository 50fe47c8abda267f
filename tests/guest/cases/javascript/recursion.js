let n = 0
function f() { n++; f() }
try { f() } catch (e) { console.log(e.name, e.message, n > 1000) }
