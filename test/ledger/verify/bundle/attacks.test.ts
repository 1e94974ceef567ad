import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { zipSync } from "fflate";
import { parseSignedCheckpoint } from "../../../../src/ledger/proof/checkpoint.ts";
import { type BundleBench, openBench, story, WORKSPACE } from "../../article14/support.ts";
import { draft } from "../../support.ts";
import { codes, Forger, trustIn, Unpacked, verify } from "./support.ts";

let bench: BundleBench;
let whole: Unpacked;
/** A bundle of the agent `claims`, from the middle of the story. */
let part: Unpacked;
let key: string;
const forger = new Forger();

beforeAll(async () => {
  bench = await openBench();
  await story(bench, 14);
  await bench.ledger.record(2, draft());
  whole = await Unpacked.of(await bench.zip());
  part = await Unpacked.of(
    await bench.zip({
      filter: { agent: "claims", from: "2026-01-04T00:00:00.000Z", to: "2026-01-12T00:00:00.000Z" },
    }),
  );
  key = bench.keys.verifierKeys(WORKSPACE.name).current;
});
afterAll(() => bench.close());

const genuine = (bytes: Uint8Array) => bench.keys.signBytes(bytes);

interface Attack {
  readonly name: string;
  /** The bundle to change. Default: that of the whole ledger. */
  readonly of?: "part";
  readonly change: (bundle: Unpacked) => Unpacked;
  /** Findings that must occur, with their seq if they have one. */
  readonly found: readonly string[];
  /** Whether nothing else may be found. */
  readonly alone?: true;
}

// biome-ignore lint/suspicious/noExplicitAny: tests change whatever a manifest has.
type ManifestLie = readonly [name: string, change: (manifest: any) => void, found: string];

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
    name: "all lines are turned round",
    change: (b) => b.lines("entries.ndjson", (lines) => lines.toReversed()),
    found: ["entry_misplaced", "file_changed"],
  },
  {
    name: "an entry of far behind is put in the middle",
    change: (b) =>
      b.lines("entries.ndjson", (lines) => {
        const made = line(lines, -1).replace(`"seq":${lines.length}`, '"seq":9999999');
        return lines.toSpliced(40, 0, made);
      }),
    found: ["entry_added 9999999", "entries_added", "file_changed"],
    alone: true,
  },
  {
    name: "an entry stands twice",
    change: (b) => b.lines("entries.ndjson", (lines) => lines.toSpliced(30, 0, line(lines, 29))),
    found: ["entry_added 30", "entries_added", "file_changed"],
  },
  {
    name: "an entry is added behind the last",
    change: (b) =>
      b.lines("entries.ndjson", (lines) => [
        ...lines,
        line(lines, -1).replace(`"seq":${lines.length}`, `"seq":${lines.length + 1}`),
      ]),
    found: ["entries_added", "file_changed"],
  },
  {
    name: "a line that is no entry is added",
    change: (b) => b.lines("entries.ndjson", (lines) => lines.toSpliced(5, 0, "{}")),
    found: ["entry_changed", "entries_added"],
  },
  {
    name: "the last newline is removed",
    change: (b) => b.edit("entries.ndjson", (text) => text.slice(0, -1)),
    found: ["entry_changed", "file_changed"],
  },
  {
    name: "an entry is replaced by bytes that are no UTF-8",
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
    name: "an entry and its hash are made anew",
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
    name: "the manifest counts less",
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
    name: "the signature is none",
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
    name: "a record of an erasure says less",
    change: (b) => b.edit("erasures.ndjson", (text) => text.replace(/"payloads":\["[^"]+",/, '"payloads":[')),
    found: ["erasure_changed", "file_changed"],
  },
  {
    name: "a record of an erasure is made up",
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
  { name: "the key is none", change: (b) => b.write("key.txt", "key\n"), found: ["key_changed"] },
];

/**
 * Changes by somebody who has the ledger's key, such as the gateway's operator: the manifest matches and is signed.
 */
const RESIGNED: readonly Attack[] = [
  {
    name: "a line of the entries is removed and said to be withheld",
    change: (b) =>
      b
        .lines("entries.ndjson", (lines) => lines.toSpliced(40, 1))
        .manifest(({ counts }) => {
          counts.included -= 1;
          counts.withheld += 1;
        }),
    found: ["withheld_without_filter", "entry_missing 41"],
  },
  {
    name: "a line of the entries is changed",
    change: (b) =>
      b.lines("entries.ndjson", (lines) => lines.with(10, line(lines, 10).replace("tok_", "tok-"))),
    found: ["entry_changed 11"],
  },
  {
    name: "an entry and its hash are made anew",
    change: (b) => rehash(b, 60),
    found: ["root_differs", "chain_broken 61"],
  },
  {
    name: "entries that the filter withholds are put in",
    of: "part",
    change: (b) =>
      b.write("entries.ndjson", entriesBetween(b)).manifest(({ counts }) => {
        counts.included = counts.total;
        counts.withheld = 0;
      }),
    found: ["filter_mismatch"],
  },
  {
    name: "the period is said to be shorter",
    change: (b) =>
      b.manifest(({ range }) => {
        range.from = "2026-01-05T00:00:00.000Z";
      }),
    found: ["out_of_period"],
  },
  {
    name: "a decision is removed from the table",
    change: (b) => b.edit("oversight.csv", (text) => text.split("\r\n").toSpliced(2, 1).join("\r\n")),
    found: ["oversight_differs"],
  },
  {
    name: "a decision is added to the table",
    change: (b) => b.edit("oversight.csv", (text) => `${text}${text.split("\r\n")[1]}\r\n`),
    found: ["oversight_differs"],
  },
  {
    name: "a record of an erasure is removed",
    change: (b) => b.lines("erasures.ndjson", (lines) => lines.slice(1)),
    found: ["erasure_missing"],
  },
  {
    name: "the checkpoint is one of fewer entries",
    change: (b) => b.write("checkpoint.txt", changesOf(b)[0]?.checkpoint ?? ""),
    found: ["checkpoint_differs"],
  },
  ...(
    [
      [
        "the period is said to be everything",
        ({ range }) => {
          delete range.from;
          delete range.to;
        },
        "manifest_changed",
      ],
      [
        "the period is said to have no beginning",
        ({ range }) => {
          delete range.from;
        },
        "manifest_changed",
      ],
      [
        "the period is said to have no end",
        ({ range }) => {
          delete range.to;
        },
        "manifest_changed",
      ],
      [
        "the period is said to end before it begins",
        ({ range }) => {
          range.to = range.from;
        },
        "manifest_changed",
      ],
      [
        "the period begins at no time",
        ({ range }) => {
          range.from = "2026-01-00T00:00:00.000Z";
        },
        "manifest_changed",
      ],
      [
        "the period is said to be longer at its beginning",
        ({ range }) => {
          range.from = "2026-01-02T00:00:00.000Z";
        },
        "edge_inside_period",
      ],
      [
        "the period is said to be longer at its end",
        ({ range }) => {
          range.to = "2026-01-13T00:00:00.000Z";
        },
        "edge_inside_period",
      ],
      [
        "another day is named",
        ({ range }) => {
          range.date = "2020-01-01";
        },
        "manifest_changed",
      ],
      [
        "a day is named that is none",
        ({ range }) => {
          range.date = "2026-02-30";
        },
        "manifest_changed",
      ],
      [
        "another workspace is named",
        (manifest) => {
          manifest.workspace = "somebody-else";
        },
        "manifest_changed",
      ],
      [
        "the origin's end is named as the workspace",
        (m) => {
          m.workspace = m.origin.slice(m.origin.indexOf("/") + 1);
        },
        "manifest_changed",
      ],
      [
        "it is said to be made before its entries",
        (manifest) => {
          manifest.created_at = "2001-01-01T00:00:00.000Z";
        },
        "made_before_its_entries",
      ],
      [
        "the entry before the range is left out",
        ({ edges }) => {
          delete edges.before;
        },
        "edge_missing",
      ],
      [
        "the entry behind the range is left out",
        ({ edges }) => {
          delete edges.after;
        },
        "edge_missing",
      ],
      [
        "another entry is given as the one before",
        ({ edges }) => {
          edges.before = edges.after;
        },
        "edge_not_proven",
      ],
      [
        "the entry before the range is changed",
        ({ edges }) => {
          edges.before.entry = edges.before.entry.replace('"ts":"2026', '"ts":"2025');
        },
        "edge_not_proven",
      ],
    ] satisfies readonly ManifestLie[]
  ).map(([name, change, found]) => ({
    name,
    of: "part" as const,
    change: (b: Unpacked) => b.manifest(change),
    found: [found],
  })),
  {
    name: "what leads to the root is left out",
    of: "part",
    change: (b) =>
      b.manifest(({ tree }) => {
        tree.before = tree.before.slice(1);
      }),
    found: ["manifest_contradicts"],
  },
  {
    name: "what leads to the root is changed",
    of: "part",
    change: (b) =>
      b.manifest(({ tree }) => {
        tree.after = [...tree.after.slice(1), tree.after[0]];
      }),
    found: ["root_differs"],
  },
  {
    name: "a change of the key is made up",
    change: (b) =>
      b.manifest(({ key_changes: changes }) => {
        changes[0].entry = changes[0].entry.replace(
          /"to":"[^"]+"/,
          `"to":"${forger.verifierKey(originOf(b))}"`,
        );
      }),
    found: ["key_change_broken"],
  },
];

test("what was not changed holds", async () => {
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

describe("by somebody with the ledger's key", () => {
  test.each(RESIGNED.map((attack) => [attack.name, attack] as const))("%s", async (_, attack) => {
    const bundle = attack.change((attack.of === "part" ? part : whole).copy()).resign(genuine);
    await expectFound(bundle, attack);
  });
});

async function expectFound(bundle: Unpacked, { found, alone }: Attack): Promise<void> {
  const verification = await verify(bundle, trustIn(key));
  expect(verification.verdict).toBe("tampered");
  const said = codes(verification);
  for (const finding of found) {
    const isThere = said.some(
      (each) => each === finding || (!finding.includes(" ") && each.startsWith(`${finding} `)),
    );
    if (!isThere) throw new Error(`${finding} is not among ${said.join(", ")}`);
  }
  if (alone) expect(said).toEqual([...found]);
}

describe("the archive itself", () => {
  const broken = async (change: (files: Record<string, Uint8Array>) => Record<string, Uint8Array>) =>
    verify(new Blob([new Uint8Array(zipSync(change({ ...whole.files })))]));

  test("a file is missing", async () => {
    for (const name of Object.keys(whole.files)) {
      const { [name]: _, ...rest } = whole.files;
      const verification = await broken(() => rest);
      expect([name, verification.verdict]).toEqual([name, "tampered"]);
      expect(codes(verification)).toContain("file_missing");
    }
  });

  test.each([
    ["another file", "notes.txt", "file_added"],
    ["a file in a folder", "a/entries.ndjson", "archive_changed"],
    ["a file outside", "../entries.ndjson", "archive_changed"],
    ["an absolute path", "/etc/passwd", "archive_changed"],
    ["the name in capitals", "ENTRIES.NDJSON", "archive_changed"],
  ])("%s is added", async (_, name, code) => {
    const verification = await broken((files) => ({ ...files, [name]: new Uint8Array(3) }));
    expect(verification.verdict).toBe("tampered");
    expect(codes(verification)).toContain(code);
  });

  test("a file stands twice", async () => {
    const twice = await whole.copy().write("manifest.jso_", "{}").pack().bytes();
    const text = Buffer.from(twice).toString("latin1").replaceAll("manifest.jso_", "manifest.json");
    const verification = await verify(new Blob([Buffer.from(text, "latin1")]));
    expect([verification.verdict, codes(verification)]).toEqual(["tampered", ["archive_changed"]]);
  });

  test.each([
    ["its end", (bytes: Uint8Array) => bytes.subarray(0, -30)],
    ["its half", (bytes: Uint8Array) => bytes.subarray(0, bytes.length / 2)],
    ["all but its beginning", (bytes: Uint8Array) => bytes.subarray(0, 10)],
    ["everything", () => new Uint8Array(0)],
  ])("without %s it cannot be decided", async (_, cut) => {
    const bytes = await whole.pack().bytes();
    const verification = await verify(new Blob([new Uint8Array(cut(bytes))]));
    expect([verification.verdict, codes(verification)]).toEqual(["undecided", ["not_an_archive"]]);
  });

  test("data before or behind it is seen", async () => {
    const bytes = await whole.pack().bytes();
    for (const parts of [
      [new Uint8Array(7), bytes],
      [bytes, new Uint8Array(7)],
      [bytes, bytes],
    ]) {
      expect((await verify(new Blob(parts))).verdict).toBe("tampered");
    }
  });

  test("an archive of something else cannot be decided", async () => {
    const verification = await broken(() => ({ "holiday.jpg": new Uint8Array(3) }));
    expect([verification.verdict, codes(verification)]).toEqual(["undecided", ["not_a_bundle"]]);
  });

  test("a bundle of a newer version cannot be decided", async () => {
    const verification = await verify(
      whole.copy().manifest((manifest) => {
        manifest.version = 2;
      }),
    );
    expect([verification.verdict, codes(verification)]).toEqual(["undecided", ["newer_format"]]);
  });
});

function line(lines: readonly string[], at: number): string {
  const found = lines.at(at);
  if (found === undefined) throw new Error(`there is no line ${at}`);
  return found;
}

function seqsOf(bundle: Unpacked): number[] {
  return bundle
    .text("entries.ndjson")
    .split("\n")
    .filter((each) => each !== "")
    .map((each) => JSON.parse(each).seq as number);
}

function originOf(bundle: Unpacked): string {
  return parseSignedCheckpoint(bundle.text("checkpoint.txt")).checkpoint.origin;
}

function changesOf(bundle: Unpacked): { checkpoint: string }[] {
  return JSON.parse(bundle.text("manifest.json")).key_changes;
}

/** Changes an entry and its hash. */
function rehash(bundle: Unpacked, at: number): Unpacked {
  let leaf = "";
  return bundle
    .lines("entries.ndjson", (lines) => {
      const changed = line(lines, at - 1).replace('"actor":"', '"actor":"x');
      leaf = new Bun.CryptoHasher("sha256").update(`\0${changed}`).digest("hex");
      return lines.with(at - 1, changed);
    })
    .lines("leaves.txt", (lines) => lines.with(at - 1, `${at} ${leaf}`));
}

/** The bytes of every entry in the bundle's range. */
function entriesBetween(bundle: Unpacked): string {
  const { first, last } = JSON.parse(bundle.text("manifest.json")).range;
  return bench
    .rows()
    .filter(({ seq }) => seq >= first && seq <= last)
    .map(({ bytes }) => `${bytes}\n`)
    .join("");
}

function madeUpErasure(lines: readonly string[]): string {
  const known = JSON.parse(line(lines, -1));
  return JSON.stringify({ ...known, seq: 9999, entry: known.entry.replace(/"seq":\d+/, '"seq":9999') });
}
