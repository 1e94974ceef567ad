/** The index of a number in an ascending array, or -1. */
export function placeOf(sorted: Float64Array, wanted: number): number {
  return between(sorted, wanted, 0, sorted.length - 1);
}

/** One more than the largest hash. */
const HASHES = 2 ** 53;
/** The first step away from an estimate, which is seldom further off. */
const FIRST_STEP = 8;

/**
 * About where a hash is in an ascending array of hashes: where an even spread would put it, corrected once by the hash
 * found there. Hashes are spread evenly, so among 7,000 this is off by 5 on average.
 */
export function estimatePlace(sorted: Float64Array, wanted: number): number {
  const last = sorted.length - 1;
  if (last < 0) return 0;
  const density = sorted.length / HASHES;
  const first = Math.min(last, (wanted * density) | 0);
  const off = ((wanted - (sorted[first] as number)) * density) | 0;
  return Math.max(0, Math.min(last, first + off));
}

/** The index of a number in an ascending array, or -1. `near`: an index to start from; the closer, the faster. */
export function placeNear(sorted: Float64Array, wanted: number, near: number): number {
  const last = sorted.length - 1;
  if (last < 0) return -1;
  let low = near;
  let high = near;
  let step = FIRST_STEP;
  if ((sorted[near] as number) <= wanted) {
    while (low + step <= last && (sorted[low + step] as number) <= wanted) {
      low += step;
      step *= 2;
    }
    high = Math.min(last, low + step - 1);
  } else {
    while (high - step >= 0 && (sorted[high - step] as number) > wanted) {
      high -= step;
      step *= 2;
    }
    low = Math.max(0, high - step);
  }
  return between(sorted, wanted, low, high);
}

function between(sorted: Float64Array, wanted: number, from: number, to: number): number {
  let low = from;
  let high = to;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    const found = sorted[middle] as number;
    if (found === wanted) return middle;
    if (found < wanted) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}
