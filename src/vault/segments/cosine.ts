/** A vector of unit length, with zeros at its end, as segments have them: their vectors have a multiple of four numbers. */
export function roundable(vector: Float32Array): Float32Array {
  let square = 0;
  for (const number of vector) square += number * number;
  const made = new Float32Array(Math.ceil(vector.length / 4) * 4);
  if (square === 0) return made;
  const length = Math.sqrt(square);
  for (let at = 0; at < vector.length; at++) made[at] = (vector[at] as number) / length;
  return made;
}

/**
 * Cosine similarity as sqlite-vec computes it: sums in single precision, one after the other. So both engines give the
 * same scores.
 */
export function exactSimilarity(left: Float32Array, right: Float32Array): number {
  const { fround } = Math;
  let dot = 0;
  let leftSquare = 0;
  let rightSquare = 0;
  for (let at = 0; at < left.length; at++) {
    const a = left[at] as number;
    const b = right[at] as number;
    dot = fround(dot + fround(a * b));
    leftSquare = fround(leftSquare + fround(a * a));
    rightSquare = fround(rightSquare + fround(b * b));
  }
  return 1 - fround(1 - dot / (Math.sqrt(leftSquare) * Math.sqrt(rightSquare)));
}
