// Arrays as the server packs them for the parts that draw them (`packed` in dashboard/ui/whole_path/packed.py).
// Four bytes with the length of a JSON text, that text, then float32 arrays one after another.
function unpack(data) {
  const bytes = new Uint8Array(data);
  const length = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
  const facts = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const numbers = bytes.slice(4 + length).buffer;
  const arrays = Object.entries(facts.arrays).map(([name, { at, shape }]) => {
    const size = shape.reduce((product, each) => product * each, 1);
    return [name, { values: new Float32Array(numbers, 4 * at, size), shape }];
  });
  return { facts, arrays };
}
