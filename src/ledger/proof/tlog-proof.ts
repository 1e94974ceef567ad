/** A standalone proof (c2sp.org/tlog-proof). `index` counts from 0; `checkpoint` is the signed note. */
export interface TlogProof {
  readonly index: number;
  readonly inclusion: readonly Uint8Array[];
  readonly checkpoint: string;
}

export function formatTlogProof({ index, inclusion, checkpoint }: TlogProof): string {
  const lines = ["c2sp.org/tlog-proof@v1", `index ${index}`, ...inclusion.map((hash) => hash.toBase64())];
  return `${lines.join("\n")}\n\n${checkpoint}`;
}
