/** Changes to a bundle by somebody with the ledger's key. */
import { describe, test } from "bun:test";
import {
  type Attack,
  bench,
  changesOf,
  expectFound,
  forger,
  line,
  originOf,
  part,
  rehash,
  useBundles,
  whole,
} from "./attacks-support.ts";
import type { Unpacked } from "./support.ts";

useBundles();

const genuine = (bytes: Uint8Array) => bench.keys.signBytes(bytes);

// biome-ignore lint/suspicious/noExplicitAny: tests change whatever a manifest has.
type ManifestLie = readonly [name: string, change: (manifest: any) => void, found: string];

/**
 * Changes by somebody who has the ledger's key, such as the gateway's operator: the manifest matches and is signed.
 */
const RESIGNED: readonly Attack[] = [
  {
    name: "a line of the entries is removed and declared withheld",
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
    name: "an entry and its hash are rebuilt",
    change: (b) => rehash(b, 60),
    found: ["root_differs", "chain_broken 61"],
  },
  {
    name: "entries that the filter withholds are inserted",
    of: "part",
    change: (b) =>
      b.write("entries.ndjson", entriesBetween(b)).manifest(({ counts }) => {
        counts.included = counts.total;
        counts.withheld = 0;
      }),
    found: ["filter_mismatch"],
  },
  {
    name: "the period is declared shorter",
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
        "the period is declared to be everything",
        ({ range }) => {
          delete range.from;
          delete range.to;
        },
        "manifest_changed",
      ],
      [
        "the period is declared to have no beginning",
        ({ range }) => {
          delete range.from;
        },
        "manifest_changed",
      ],
      [
        "the period is declared to have no end",
        ({ range }) => {
          delete range.to;
        },
        "manifest_changed",
      ],
      [
        "the period is declared to end before it begins",
        ({ range }) => {
          range.to = range.from;
        },
        "manifest_changed",
      ],
      [
        "the period begins at no valid time",
        ({ range }) => {
          range.from = "2026-01-00T00:00:00.000Z";
        },
        "manifest_changed",
      ],
      [
        "the period is declared longer at its beginning",
        ({ range }) => {
          range.from = "2026-01-02T00:00:00.000Z";
        },
        "edge_inside_period",
      ],
      [
        "the period is declared longer at its end",
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
        "an invalid day is named",
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
        "the end of the origin is named as the workspace",
        (m) => {
          m.workspace = m.origin.slice(m.origin.indexOf("/") + 1);
        },
        "manifest_changed",
      ],
      [
        "it is declared older than its entries",
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
        "the entry after the range is left out",
        ({ edges }) => {
          delete edges.after;
        },
        "edge_missing",
      ],
      [
        "another entry is given as the previous one",
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
    name: "the path to the root is left out",
    of: "part",
    change: (b) =>
      b.manifest(({ tree }) => {
        tree.before = tree.before.slice(1);
      }),
    found: ["manifest_contradicts"],
  },
  {
    name: "the path to the root is changed",
    of: "part",
    change: (b) =>
      b.manifest(({ tree }) => {
        tree.after = [...tree.after.slice(1), tree.after[0]];
      }),
    found: ["root_differs"],
  },
  {
    name: "a change of the key is forged",
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

describe("by somebody with the ledger's key", () => {
  test.each(RESIGNED.map((attack) => [attack.name, attack] as const))("%s", async (_, attack) => {
    const bundle = attack.change((attack.of === "part" ? part : whole).copy()).resign(genuine);
    await expectFound(bundle, attack);
  });
});

/** The bytes of every entry in the bundle's range. */
function entriesBetween(bundle: Unpacked): string {
  const { first, last } = JSON.parse(bundle.text("manifest.json")).range;
  return bench
    .rows()
    .filter(({ seq }) => seq >= first && seq <= last)
    .map(({ bytes }) => `${bytes}\n`)
    .join("");
}
