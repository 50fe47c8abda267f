// WebAssembly: compiled at run time, called, and trapping.
const bytes = Uint8Array.from([
  0, 97, 115, 109, 1, 0, 0, 0,
  1, 7, 1, 96, 2, 127, 127, 1, 127,       // type: (i32, i32) -> i32
  3, 3, 2, 0, 0,                          // two functions of that type
  7, 13, 2, 3, 97, 100, 100, 0, 0, 3, 100, 105, 118, 0, 1, // "add", "div"
  10, 17, 2, 7, 0, 32, 0, 32, 1, 106, 11, 7, 0, 32, 0, 32, 1, 109, 11,
]);
WebAssembly.instantiate(bytes).then(({ instance: { exports } }) => {
  console.log(exports.add(2, 40), exports.div(100, 7), exports.add(2 ** 31 - 1, 1));
  try {
    exports.div(1, 0);
  } catch (error) {
    console.log(error.name, error.message);
  }
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 10 });
  console.log(memory.buffer.byteLength, memory.grow(2), memory.buffer.byteLength);
});
