/** Changes to a bundle by somebody without a key. */
import { describe, expect, test } from "bun:test";
import {
  type Attack,
  changesOf,
  expectFound,
  forger,
  key,
  line,
  originOf,
  part,
  rehash,
  useBundles,
  whole,
} from "./attacks-support.ts";
import { trustIn, type Unpacked, verify } from "./support.ts";

useBundles();

/** Changes by somebody without a key. */
const CHANGED: readonly Attack[] = [
  {
    name: "a line of the entries is removed",
    change: (b) => b.lines("entries.ndjson", (lines) => lines.toSpliced(40, 1)),
    found: ["entry_missing 41", "entries_removed", "file_changed"],
  },
  {
    name: "a line of filtered entries is removed",
    of: "part",
    change: (b) => b.lines("entries.ndjson", (lines) => lines.toSpliced(4, 1)),
    found: ["entries_removed", "file_changed"],
  },
  {
    name: "an entry is changed",
    change: (b) =>
      b.lines("entries.ndjson", (lines) => lines.with(10, line(lines, 10).replace("tok_", "tok-"))),
    found: ["entry_changed 11", "file_changed"],
  },
  {
    name: "the last entry is changed",
    change: (b) =>
      b.lines("entries.ndjson", (lines) => lines.with(-1, line(lines, -1).replace('"system"', '"rest"'))),
    found: ["entry_changed", "file_changed"],
  },
  {
    name: "two lines change places",
    change: (b) =>
      b.lines("entries.ndjson", (lines) => lines.toSpliced(20, 2, line(lines, 21), line(lines, 20))),
    found: ["entry_misplaced 22", "file_changed"],
  },
  {
    name: "a line is moved far up",
    change: (b) =>
      b.lines("entries.ndjson", (lines) => lines.toSpliced(300, 1).toSpliced(20, 0, line(lines, 300))),
    found: ["entry_misplaced 301", "file_changed"],
    alone: true,
  },
  {
    name: "a line is moved far down",
    change: (b) =>
      b.lines("entries.ndjson", (lines) => lines.toSpliced(300, 0, line(lines, 20)).toSpliced(20, 1)),
    found: ["entry_misplaced 21", "file_changed"],
    alone: true,
  },
  {
    name: "all lines are reversed",
    change: (b) => b.lines("entries.ndjson", (lines) => lines.toReversed()),
    found: ["entry_misplaced", "file_changed"],
  },
  {
    name: "an entry from far back is put in the middle",
    change: (b) =>
      b.lines("entries.ndjson", (lines) => {
        const made = line(lines, -1).replace(`"seq":${lines.length}`, '"seq":9999999');
        return lines.toSpliced(40, 0, made);
      }),
    found: ["entry_added 9999999", "entries_added", "file_changed"],
    alone: true,
  },
  {
    name: "an entry occurs twice",
    change: (b) => b.lines("entries.ndjson", (lines) => lines.toSpliced(30, 0, line(lines, 29))),
    found: ["entry_added 30", "entries_added", "file_changed"],
  },
  {
    name: "an entry is added after the last",
    change: (b) =>
      b.lines("entries.ndjson", (lines) => [
        ...lines,
        line(lines, -1).replace(`"seq":${lines.length}`, `"seq":${lines.length + 1}`),
      ]),
    found: ["entries_added", "file_changed"],
  },
  {
    name: "a line that is not an entry is added",
    change: (b) => b.lines("entries.ndjson", (lines) => lines.toSpliced(5, 0, "{}")),
    found: ["entry_changed", "entries_added"],
  },
  {
    name: "the last newline is removed",
    change: (b) => b.edit("entries.ndjson", (text) => text.slice(0, -1)),
    found: ["entry_changed", "file_changed"],
  },
  {
    name: "an entry is replaced by bytes that are not UTF-8",
    change: (b) => b.write("entries.ndjson", Uint8Array.of(0xff, 0xfe, 10)),
    found: ["entry_changed", "entries_removed"],
  },
  {
    name: "the hash of an entry is changed",
    change: (b) => b.lines("leaves.txt", (lines) => lines.with(50, `51 ${"ab".repeat(32)}`)),
    found: ["leaves_changed 51", "root_differs", "file_changed"],
  },
  {
    name: "a hash is removed",
    change: (b) => b.lines("leaves.txt", (lines) => lines.toSpliced(50, 1)),
    found: ["leaves_changed 51", "file_changed"],
  },
  {
    name: "two hashes change places",
    change: (b) => b.lines("leaves.txt", (lines) => lines.toSpliced(7, 2, line(lines, 8), line(lines, 7))),
    found: ["leaves_changed 8", "file_changed"],
  },
  {
    name: "a hash is added",
    change: (b) => b.lines("leaves.txt", (lines) => [...lines, `${lines.length + 1} ${"00".repeat(32)}`]),
    found: ["leaves_changed", "file_changed"],
  },
  {
    name: "an entry and its hash are rebuilt",
    change: (b) => rehash(b, 60),
    found: ["root_differs", "chain_broken 61", "file_changed"],
  },
  {
    name: "the hash of a withheld entry is changed",
    of: "part",
    change: (b) => {
      const kept = new Set(seqsOf(b));
      return b.lines("leaves.txt", (lines) => {
        const at = lines.findIndex((each) => !kept.has(Number(each.split(" ")[0])));
        return lines.with(at, `${line(lines, at).split(" ")[0]} ${"cd".repeat(32)}`);
      });
    },
    found: ["root_differs", "file_changed"],
  },
  {
    name: "the manifest counts too little",
    change: (b) =>
      b.manifest(({ counts }) => {
        counts.included -= 1;
        counts.withheld += 1;
      }),
    found: ["manifest_changed", "withheld_without_filter", "entries_added"],
  },
  {
    name: "the manifest's numbers do not add up",
    change: (b) =>
      b.manifest(({ counts }) => {
        counts.total += 1;
      }),
    found: ["manifest_changed"],
  },
  {
    name: "the manifest names another filter",
    of: "part",
    change: (b) =>
      b.manifest(({ filters }) => {
        filters.agent = "scout";
      }),
    found: ["manifest_changed", `filter_mismatch`],
  },
  {
    name: "the manifest's range is cut",
    of: "part",
    change: (b) =>
      b.manifest(({ range, counts }) => {
        range.last -= 1;
        counts.total -= 1;
        counts.withheld -= 1;
      }),
    found: ["manifest_changed", "leaves_changed", "edge_not_proven"],
  },
  {
    name: "the manifest is no JSON",
    change: (b) => b.write("manifest.json", "{"),
    found: ["manifest_changed"],
  },
  {
    name: "the signature is another's",
    change: (b) => b.write("manifest.sig", `${forger.signBytes(new Uint8Array(3)).toBase64()}\n`),
    found: ["manifest_changed"],
  },
  {
    name: "the signature is invalid",
    change: (b) => b.write("manifest.sig", "signed\n"),
    found: ["manifest_signature"],
  },
  {
    name: "the report is replaced",
    change: (b) =>
      b.edit("report.html", (text) => text.replace("Human oversight report", "Inhuman oversight report")),
    found: ["file_changed"],
  },
  {
    name: "the page is replaced",
    change: (b) => b.write("verify.html", "<b>holds</b>"),
    found: ["file_changed"],
  },
  {
    name: "a decision is removed from the table",
    change: (b) => b.edit("oversight.csv", (text) => text.split("\r\n").toSpliced(2, 1).join("\r\n")),
    found: ["oversight_differs", "file_changed"],
  },
  {
    name: "a decision is changed in the table",
    change: (b) => b.edit("oversight.csv", (text) => text.replace(",deny,", ",approve,")),
    found: ["oversight_differs", "file_changed"],
  },
  {
    name: "a record of an erasure is removed",
    change: (b) => b.lines("erasures.ndjson", (lines) => lines.slice(1)),
    found: ["erasure_missing", "file_changed"],
  },
  {
    name: "a record of an erasure names less",
    change: (b) => b.edit("erasures.ndjson", (text) => text.replace(/"payloads":\["[^"]+",/, '"payloads":[')),
    found: ["erasure_changed", "file_changed"],
  },
  {
    name: "a record of an erasure is forged",
    change: (b) => b.lines("erasures.ndjson", (lines) => [...lines, madeUpErasure(lines)]),
    found: ["erasure_not_proven 9999", "file_changed"],
  },
  {
    name: "the checkpoint is changed",
    change: (b) => b.edit("checkpoint.txt", (text) => text.replace(/\n(\d+)\n/, "\n7\n")),
    found: ["checkpoint_changed", "file_changed"],
  },
  {
    name: "the checkpoint is one of fewer entries",
    change: (b) => b.write("checkpoint.txt", changesOf(b)[0]?.checkpoint ?? ""),
    found: ["checkpoint_differs", "file_changed"],
  },
  {
    name: "the key is exchanged",
    change: (b) => b.edit("key.txt", (text) => `${forger.verifierKey(originOf(b))}\n${text}`),
    found: ["manifest_contradicts", "file_changed"],
  },
  { name: "the key is invalid", change: (b) => b.write("key.txt", "key\n"), found: ["key_changed"] },
];

test("an unchanged bundle passes", async () => {
  for (const bundle of [whole, part]) {
    for (const trust of [{}, trustIn(key)]) {
      const verification = await verify(bundle.copy(), trust);
      expect(verification.findings).toEqual([]);
      expect(verification.verdict).toBe("holds");
    }
  }
});

describe("by somebody without a key", () => {
  test.each(CHANGED.map((attack) => [attack.name, attack] as const))("%s", async (_, attack) => {
    const bundle = attack.change((attack.of === "part" ? part : whole).copy());
    await expectFound(bundle, attack);
  });
});

function seqsOf(bundle: Unpacked): number[] {
  return bundle
    .text("entries.ndjson")
    .split("\n")
    .filter((each) => each !== "")
    .map((each) => JSON.parse(each).seq as number);
}

function madeUpErasure(lines: readonly string[]): string {
  const known = JSON.parse(line(lines, -1));
  return JSON.stringify({ ...known, seq: 9999, entry: known.entry.replace(/"seq":\d+/, '"seq":9999') });
}
