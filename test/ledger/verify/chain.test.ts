/**
 * Attacks on the chain as a whole: each done to a copy of a data directory that a real gateway wrote, each named for
 * what it is. What is found has to be exactly this, so that no attack drowns in what follows from it.
 */
import { describe, setDefaultTimeout } from "bun:test";
import { encodeEntry } from "../../../src/ledger/entry.ts";
import { Oracle } from "../proof/oracle.ts";
import { draft } from "../support.ts";
import { HOLDS, INSIDE, LAST, last, NEXT, tampered, testAttacks, undecided } from "./attack.ts";
import type { Vandal } from "./vandal.ts";

setDefaultTimeout(60_000);

/** In the place of an entry, one that says that a server signs once a day. */
function ruleAt(v: Vandal, seq: number): string {
  const { ts } = JSON.parse(v.row(seq).bytes) as { ts: string };
  const detail = { checkpoint_every: 1_000_000, checkpoint_seconds: 86_400 };
  const rule = draft({ action: "config.change", outcome: "succeeded", channel: "system", detail });
  return encodeEntry(rule, { seq, prev: "0".repeat(64), ts });
}

describe("the chain is made anew:", () => {
  testAttacks([
    {
      name: "an entry is changed and the chain made anew",
      attack: (v) =>
        v.unguarded(() => {
          v.set(INSIDE, { bytes: v.forged(INSIDE) });
          v.rechain(INSIDE);
        }),
      alone: tampered(`entries_rewritten ${INSIDE}`),
    },
    {
      name: "the same, with tiles and index",
      attack: async (v) => {
        v.unguarded(() => {
          v.set(INSIDE, { bytes: v.forged(INSIDE) });
          v.rechain(INSIDE);
        });
        await v.rebuild();
      },
      alone: tampered("entries_rewritten 201"),
    },
    {
      name: "the same, and the stored checkpoints are deleted",
      attack: async (v) => {
        v.unguarded(() => {
          v.set(INSIDE, { bytes: v.forged(INSIDE) });
          v.rechain(INSIDE);
          v.removeCheckpoints();
        });
        await v.rebuild();
      },
      alone: undecided("no_checkpoint"),
      withCheckpoints: tampered("entries_rewritten 201"),
    },
    {
      name: "the same, and only those checkpoints are left that still are right",
      attack: async (v) => {
        v.unguarded(() => {
          v.set(INSIDE, { bytes: v.forged(INSIDE) });
          v.rechain(INSIDE);
          v.removeCheckpoints(INSIDE);
        });
        await v.rebuild();
      },
      alone: undecided("payload_unaccounted"),
      withCheckpoints: tampered("entries_rewritten 201"),
    },
    {
      name: "the same, of entries that took longer than any server leaves unsigned",
      attack: async (v) => {
        v.unguarded(() => {
          v.set(INSIDE, { bytes: v.forged(INSIDE) });
          v.delay(INSIDE, 200_000);
          v.removeCheckpoints(INSIDE);
        });
        await v.rebuild();
      },
      alone: undecided("tail_unvouched 201", "payload_unaccounted"),
      withCheckpoints: tampered("entries_rewritten 201"),
    },
    {
      name: "the same, and an entry that nobody signed says that the server signs seldom",
      attack: async (v) => {
        v.unguarded(() => {
          v.set(INSIDE, { bytes: ruleAt(v, INSIDE) });
          v.delay(INSIDE, 200_000);
          v.removeCheckpoints(INSIDE);
        });
        await v.rebuild();
      },
      alone: undecided("tail_unvouched 201", "payload_unaccounted"),
      withCheckpoints: tampered("entries_rewritten 201"),
    },
    {
      name: "the same, and the stored checkpoints are signed anew with the stolen key",
      attack: async (v) => {
        v.unguarded(() => {
          v.set(INSIDE, { bytes: v.forged(INSIDE) });
          v.rechain(INSIDE);
          v.signAnew(v.stolenKey());
        });
        await v.rebuild();
      },
      alone: HOLDS,
      withCheckpoints: tampered("entries_rewritten 201"),
    },
    {
      name: "the same, but the tiles are left as they were",
      attack: (v) =>
        v.unguarded(() => {
          v.set(INSIDE, { bytes: v.forged(INSIDE) });
          v.rechain(INSIDE);
          v.removeCheckpoints();
        }),
      alone: tampered(`entries_rewritten ${INSIDE}`, "no_checkpoint"),
      withCheckpoints: tampered(`entries_rewritten ${INSIDE}`),
    },
    {
      name: "an entry is removed and the chain made anew",
      attack: async (v) => {
        v.unguarded(() => {
          v.run("DELETE FROM ledger WHERE workspace_id = 1 AND seq = ?", INSIDE);
          v.rechain(INSIDE);
        });
        await v.rebuild();
      },
      alone: tampered("entries_rewritten 201", `tail_missing ${LAST}`),
    },
    {
      name: "the same, with the texts beside the entries, and the stored checkpoints are deleted",
      attack: async (v) => {
        v.unguarded(() => {
          v.run("DELETE FROM ledger WHERE workspace_id = 1 AND seq = ?", INSIDE);
          v.rechain(INSIDE);
          v.run("UPDATE payloads SET seq = seq - 1 WHERE workspace_id = 1 AND seq > ?", INSIDE);
          v.removeCheckpoints();
        });
        await v.rebuild();
      },
      alone: undecided("no_checkpoint"),
      withCheckpoints: tampered("entries_rewritten 201", `tail_missing ${LAST}`),
    },
    {
      name: "the same, but they are signed anew with the stolen key",
      attack: async (v) => {
        v.unguarded(() => {
          v.run("DELETE FROM ledger WHERE workspace_id = 1 AND seq = ?", INSIDE);
          v.rechain(INSIDE);
          v.run("UPDATE payloads SET seq = seq - 1 WHERE workspace_id = 1 AND seq > ?", INSIDE);
          v.signAnew(v.stolenKey());
        });
        await v.rebuild();
      },
      alone: undecided("payload_unaccounted"),
      withCheckpoints: tampered("entries_rewritten 201", `tail_missing ${LAST}`),
    },
    {
      name: "the first entry is removed and the chain made anew",
      attack: async (v) => {
        v.unguarded(() => {
          v.run("DELETE FROM ledger WHERE workspace_id = 1 AND seq = 1");
          v.rechain(1);
        });
        await v.rebuild();
      },
      alone: tampered("entries_rewritten 1", `tail_missing ${LAST}`),
    },
  ]);
});

describe("the end:", () => {
  testAttacks([
    {
      name: "the tail is cut off",
      attack: (v) => v.unguarded(() => v.run("DELETE FROM ledger WHERE workspace_id = 1 AND seq > 650")),
      alone: tampered("tail_missing 651"),
    },
    {
      name: "the same, with the checkpoints that go past it",
      attack: (v) =>
        v.unguarded(() => {
          v.run("DELETE FROM ledger WHERE workspace_id = 1 AND seq > 650");
          v.removeCheckpoints(650);
        }),
      alone: undecided("payload_unaccounted"),
      withCheckpoints: tampered("tail_missing 651"),
    },
    {
      name: "the same, with all stored checkpoints",
      attack: (v) =>
        v.unguarded(() => {
          v.run("DELETE FROM ledger WHERE workspace_id = 1 AND seq > 650");
          v.removeCheckpoints();
        }),
      alone: undecided("no_checkpoint"),
      withCheckpoints: tampered("tail_missing 651"),
    },
    {
      name: "more is cut off, with the checkpoints, and the tiles are left",
      attack: (v) =>
        v.unguarded(() => {
          v.run("DELETE FROM ledger WHERE workspace_id = 1 AND seq > 505");
          v.run("DELETE FROM payloads WHERE workspace_id = 1 AND seq > 505");
          v.removeCheckpoints(505);
        }),
      alone: tampered("tail_missing 506"),
    },
    {
      name: "all entries are removed",
      attack: (v) =>
        v.unguarded(() => {
          for (const table of ["ledger", "ledger_tiles", "ledger_index", "ledger_checkpoints", "payloads"]) {
            v.run(`DELETE FROM ${table} WHERE workspace_id = 1`);
          }
        }),
      alone: undecided("no_checkpoint"),
      withCheckpoints: tampered("tail_missing 1"),
    },
    {
      name: "another program puts an entry behind the tail",
      attack: (v) => {
        const { seq, leaf } = v.row(last(v));
        const bytes = '{"action":"nothing.happened"}';
        v.run("INSERT INTO ledger VALUES (1, ?, ?, ?, ?)", seq + 1, leaf, Oracle.leafHash(bytes), bytes);
      },
      alone: tampered(`entry_foreign ${NEXT}`),
    },
    {
      name: "another program puts an entry behind the tail, whose hash is none",
      attack: (v) => {
        const { seq, leaf, bytes } = v.row(last(v));
        v.run("INSERT INTO ledger VALUES (1, ?, ?, ?, ?)", seq + 1, leaf, new Uint8Array(32), bytes);
      },
      alone: tampered(`entry_changed ${NEXT}`),
    },
  ]);
});
