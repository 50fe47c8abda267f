let x = 1
function f( {
