/**
 * Attacks on single entries. Each is carried out on a copy of a data directory that a real gateway wrote, and is
 * named for what it is. The findings must be exactly these, so no attack is buried under its consequences.
 */
import { describe, setDefaultTimeout } from "bun:test";
import { Oracle } from "../proof/oracle.ts";
import { AT_END, INSIDE, LAST, last, tampered, testAttacks } from "./attack.ts";

setDefaultTimeout(60_000);

describe("one row:", () => {
  testAttacks([
    {
      name: "bytes of an entry are changed with a hex editor",
      attack: (v) =>
        v.edit(v.row(INSIDE).bytes, v.row(INSIDE).bytes.replace('"actor":"token', '"actor":"toker')),
      alone: tampered(`entry_changed ${INSIDE}`),
    },
    {
      name: "the same after the last tile",
      attack: (v) =>
        v.edit(v.row(AT_END).bytes, v.row(AT_END).bytes.replace('"actor":"token', '"actor":"toker')),
      alone: tampered(`entry_changed ${AT_END}`),
    },
    {
      name: "the same in the last entry of all",
      attack: (v) =>
        v.edit(v.row(last(v)).bytes, v.row(last(v)).bytes.replace('"actor":"token', '"actor":"toker')),
      alone: tampered(`entry_changed ${LAST}`),
    },
    {
      name: "triggers are dropped, a row is changed, triggers are restored",
      attack: (v) => v.unguarded(() => v.set(INSIDE, { bytes: v.forged(INSIDE) })),
      alone: tampered(`entry_changed ${INSIDE}`),
    },
    {
      name: "several rows are changed, two of them next to each other",
      attack: (v) =>
        v.unguarded(() => {
          for (const seq of [7, 8, INSIDE, AT_END]) v.set(seq, { bytes: v.forged(seq) });
        }),
      alone: tampered(
        "entry_changed 7",
        "entry_changed 8",
        `entry_changed ${INSIDE}`,
        `entry_changed ${AT_END}`,
      ),
    },
    {
      name: "a row is changed with its hash, and no longer matches the next",
      attack: (v) =>
        v.unguarded(() => {
          const bytes = v.forged(INSIDE);
          v.set(INSIDE, { bytes, leaf: Oracle.leafHash(bytes) });
        }),
      alone: tampered(`entry_changed ${INSIDE}`),
    },
    {
      name: "the same, including the next row's column",
      attack: (v) =>
        v.unguarded(() => {
          const bytes = v.forged(INSIDE);
          v.set(INSIDE, { bytes, leaf: Oracle.leafHash(bytes) });
          v.set(INSIDE + 1, { prev: Oracle.leafHash(bytes) });
        }),
      alone: tampered(`entry_changed ${INSIDE}`, `prev_changed ${INSIDE + 1}`),
    },
    {
      name: "a row after the last tile is changed with its hash, so either it or the next may be wrong",
      attack: (v) =>
        v.unguarded(() => {
          const bytes = v.forged(AT_END);
          v.set(AT_END, { bytes, leaf: Oracle.leafHash(bytes) });
        }),
      alone: tampered(`chain_broken ${AT_END + 1}`),
    },
    {
      name: "the last entry is changed with its hash",
      attack: (v) =>
        v.unguarded(() => {
          const bytes = v.forged(last(v));
          v.set(last(v), { bytes, leaf: Oracle.leafHash(bytes) });
        }),
      alone: tampered("entries_rewritten 601"),
    },
    {
      name: "the column of an entry's hash is changed",
      attack: (v) => v.unguarded(() => v.set(INSIDE, { leaf: v.row(INSIDE - 1).leaf })),
      alone: tampered(`leaf_changed ${INSIDE}`),
    },
    {
      name: "the same after the last tile",
      attack: (v) => v.unguarded(() => v.set(AT_END, { leaf: v.row(AT_END - 1).leaf })),
      alone: tampered(`leaf_changed ${AT_END}`),
    },
    {
      name: "the column of a predecessor's hash is changed",
      attack: (v) => v.unguarded(() => v.set(INSIDE, { prev: v.row(INSIDE).leaf })),
      alone: tampered(`prev_changed ${INSIDE}`),
    },
    {
      name: "the same after the last tile",
      attack: (v) => v.unguarded(() => v.set(AT_END, { prev: v.row(AT_END).leaf })),
      alone: tampered(`prev_changed ${AT_END}`),
    },
    {
      name: "two rows are swapped",
      attack: (v) =>
        v.unguarded(() => {
          v.run("UPDATE ledger SET seq = -1 WHERE workspace_id = 1 AND seq = ?", INSIDE);
          v.run("UPDATE ledger SET seq = ? WHERE workspace_id = 1 AND seq = ?", INSIDE, INSIDE + 5);
          v.run("UPDATE ledger SET seq = ? WHERE workspace_id = 1 AND seq = -1", INSIDE + 5);
        }),
      alone: tampered(
        `entry_changed ${INSIDE}`,
        `entry_changed ${INSIDE + 5}`,
        `prev_changed ${INSIDE}`,
        `prev_changed ${INSIDE + 5}`,
      ),
    },
    {
      name: "a row is removed, and those after it stay as they are",
      attack: (v) =>
        v.unguarded(() => v.run("DELETE FROM ledger WHERE workspace_id = 1 AND seq = ?", INSIDE)),
      alone: tampered(`entry_missing ${INSIDE}`),
    },
    {
      name: "forty rows across the end of a tile are removed",
      attack: (v) =>
        v.unguarded(() => v.run("DELETE FROM ledger WHERE workspace_id = 1 AND seq BETWEEN 500 AND 539")),
      alone: tampered("entry_missing 500"),
    },
    {
      name: "the first row is removed",
      attack: (v) => v.unguarded(() => v.run("DELETE FROM ledger WHERE workspace_id = 1 AND seq = 1")),
      alone: tampered("entry_missing 1"),
    },
    {
      name: "a row is moved to another workspace",
      attack: (v) =>
        v.unguarded(() => {
          v.run("PRAGMA foreign_keys = OFF");
          v.run("UPDATE ledger SET workspace_id = 7 WHERE workspace_id = 1 AND seq = ?", INSIDE);
        }),
      alone: tampered("workspace_missing", `entry_missing ${INSIDE}`),
    },
  ]);
});
