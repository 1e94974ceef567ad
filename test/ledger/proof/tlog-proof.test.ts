import { describe, expect, test } from "bun:test";
import { formatTlogProof } from "../../../src/ledger/proof/tlog-proof.ts";

const CHECKPOINT =
  "example.com/log\n73895\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n— example.com/log AAAAAAA=\n";

describe("a proof in C2SP's format", () => {
  test("has its index, its hashes and its checkpoint as the format defines", () => {
    const inclusion = [1, 2].map((byte) => new Uint8Array(32).fill(byte));
    expect(formatTlogProof({ index: 73_894, inclusion, checkpoint: CHECKPOINT })).toBe(
      "c2sp.org/tlog-proof@v1\nindex 73894\n" +
        "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\nAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=\n" +
        `\n${CHECKPOINT}`,
    );
  });

  test("of the only leaf has no hash", () => {
    expect(formatTlogProof({ index: 0, inclusion: [], checkpoint: CHECKPOINT })).toBe(
      `c2sp.org/tlog-proof@v1\nindex 0\n\n${CHECKPOINT}`,
    );
  });
});
