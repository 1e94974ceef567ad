/**
 * The length of the longest end of `left` with which `right` begins, at most `most`. Takes linear time (Knuth, Morris
 * and Pratt, 1977), however repetitive the strings are.
 */
export function overlap(left: string, right: string, most: number): number {
  const pattern = right.slice(0, most);
  const text = left.slice(Math.max(0, left.length - most));
  // By length of a beginning of the pattern: its longest proper end with which the pattern also begins.
  const borders = new Int32Array(pattern.length + 1);
  const extend = (from: number, unit: number): number => {
    let length = from;
    while (length === pattern.length || pattern.charCodeAt(length) !== unit) {
      if (length === 0) return 0;
      length = borders[length] ?? 0;
    }
    return length + 1;
  };
  for (let at = 1; at < pattern.length; at++) {
    borders[at + 1] = extend(borders[at] ?? 0, pattern.charCodeAt(at));
  }
  let length = 0;
  for (let at = 0; at < text.length; at++) length = extend(length, text.charCodeAt(at));
  return length;
}
