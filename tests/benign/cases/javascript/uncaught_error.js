// An uncaught error: its place and stack on stderr, exit code 1.
function parse(text) {
  if (!text) throw new TypeError('nothing to parse');
  return text.length;
}

console.log(parse('abc'));
process.on('exit', (code) => console.log('leaving with', code));
parse('');
