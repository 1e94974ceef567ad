export interface DiffLine {
  readonly kind: "same" | "removed" | "added";
  readonly text: string;
}

/** If the changed middles have more pairs of lines than this, the diff replaces one middle with the other. */
const MOST_PAIRS = 1_000_000;

/** A line diff by longest common subsequence. */
export function diffLines(before: string, after: string): DiffLine[] {
  const old = before.split("\n");
  const now = after.split("\n");
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (
    end < old.length - start &&
    end < now.length - start &&
    old[old.length - 1 - end] === now[now.length - 1 - end]
  ) {
    end += 1;
  }
  const same = (text: string): DiffLine => ({ kind: "same", text });
  return [
    ...old.slice(0, start).map(same),
    ...diffMiddle(old.slice(start, old.length - end), now.slice(start, now.length - end)),
    ...old.slice(old.length - end).map(same),
  ];
}

function diffMiddle(old: readonly string[], now: readonly string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: "removed", text });
  const added = (text: string): DiffLine => ({ kind: "added", text });
  if (old.length * now.length > MOST_PAIRS) return [...old.map(removed), ...now.map(added)];
  const width = now.length + 1;
  /** At `i * width + j`: the length of the longest common subsequence of the lines from `i` and from `j` on. */
  const common = new Uint32Array((old.length + 1) * width);
  const at = (i: number, j: number): number => common[i * width + j] ?? 0;
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      common[i * width + j] = old[i] === now[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < now.length) {
    const before = old[i];
    const after = now[j];
    if (before !== undefined && before === after) {
      lines.push({ kind: "same", text: before });
      i += 1;
      j += 1;
    } else if (before !== undefined && (after === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push(removed(before));
      i += 1;
    } else if (after !== undefined) {
      lines.push(added(after));
      j += 1;
    }
  }
  return lines;
}
