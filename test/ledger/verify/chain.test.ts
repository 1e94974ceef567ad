/**
 * Attacks on the chain as a whole. Each is carried out on a copy of a data directory that a real gateway wrote, and
 * is named for what it is. The findings must be exactly these, so no attack is buried under its consequences.
 */
import { describe, setDefaultTimeout } from "bun:test";
import { encodeEntry } from "../../../src/ledger/entry.ts";
import { FIRST_WITH_HEADS } from "../../../src/ledger/verify/head.ts";
import { WITHOUT_LONG_TEXTS } from "../../support/older-schema.ts";
import { Oracle } from "../proof/oracle.ts";
import { draft } from "../support.ts";
import { HOLDS, INSIDE, LAST, last, NEXT, STRANGER, tampered, testAttacks } from "./attack.ts";
import { signAs, type Vandal } from "./vandal.ts";

setDefaultTimeout(60_000);

/** An entry that replaces another and claims that the server signs once a day. */
function ruleAt(v: Vandal, seq: number): string {
  const { ts } = JSON.parse(v.row(seq).bytes) as { ts: string };
  const detail = { checkpoint_every: 1_000_000, checkpoint_seconds: 86_400 };
  const rule = draft({ action: "config.change", outcome: "succeeded", channel: "system", detail });
  return encodeEntry(rule, { seq, prev: "0".repeat(64), ts });
}

describe("the chain is rebuilt:", () => {
  testAttacks([
    {
      name: "an entry is changed and the chain rebuilt",
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
      alone: tampered("entries_rewritten 1", "checkpoint_missing"),
      withCheckpoints: tampered("entries_rewritten 201", "checkpoint_missing"),
    },
    {
      name: "the same, and only the checkpoints that are still right are left",
      attack: async (v) => {
        v.unguarded(() => {
          v.set(INSIDE, { bytes: v.forged(INSIDE) });
          v.rechain(INSIDE);
          v.removeCheckpoints(INSIDE);
        });
        await v.rebuild();
      },
      alone: tampered("entries_rewritten 201", "checkpoint_missing"),
    },
    {
      name: "the same, with entries that took longer than any server leaves unsigned",
      attack: async (v) => {
        v.unguarded(() => {
          v.set(INSIDE, { bytes: v.forged(INSIDE) });
          v.delay(INSIDE, 200_000);
          v.removeCheckpoints(INSIDE);
        });
        await v.rebuild();
      },
      alone: tampered("entries_rewritten 201", "checkpoint_missing"),
    },
    {
      name: "the same, and an entry that nobody signed claims that the server signs rarely",
      attack: async (v) => {
        v.unguarded(() => {
          v.set(INSIDE, { bytes: ruleAt(v, INSIDE) });
          v.delay(INSIDE, 200_000);
          v.removeCheckpoints(INSIDE);
        });
        await v.rebuild();
      },
      alone: tampered("entries_rewritten 201", "checkpoint_missing"),
    },
    {
      name: "the same, and the stored checkpoints are signed again with the stolen key",
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
      alone: tampered(`entries_rewritten ${INSIDE}`, "checkpoint_missing"),
    },
    {
      name: "an entry is removed and the chain rebuilt",
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
      name: "the same, with the texts of the entries, and the stored checkpoints are deleted",
      attack: async (v) => {
        v.unguarded(() => {
          v.run("DELETE FROM ledger WHERE workspace_id = 1 AND seq = ?", INSIDE);
          v.renumberReferences(INSIDE);
          v.rechain(INSIDE);
          v.run("UPDATE payloads SET seq = seq - 1 WHERE workspace_id = 1 AND seq > ?", INSIDE);
          v.removeCheckpoints();
        });
        await v.rebuild();
      },
      alone: tampered(`tail_missing ${LAST}`, "checkpoint_missing"),
      withCheckpoints: tampered("entries_rewritten 201", `tail_missing ${LAST}`, "checkpoint_missing"),
    },
    {
      name: "the same, but they are signed again with the stolen key",
      attack: async (v) => {
        v.unguarded(() => {
          v.run("DELETE FROM ledger WHERE workspace_id = 1 AND seq = ?", INSIDE);
          v.renumberReferences(INSIDE);
          v.rechain(INSIDE);
          v.run("UPDATE payloads SET seq = seq - 1 WHERE workspace_id = 1 AND seq > ?", INSIDE);
          v.signAnew(v.stolenKey());
        });
        await v.rebuild();
      },
      alone: HOLDS,
      withCheckpoints: tampered("entries_rewritten 201", `tail_missing ${LAST}`),
    },
    {
      name: "the first entry is removed and the chain rebuilt",
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
      alone: tampered("tail_missing 651", "checkpoint_missing"),
    },
    {
      name: "the same, with all stored checkpoints",
      attack: (v) =>
        v.unguarded(() => {
          v.run("DELETE FROM ledger WHERE workspace_id = 1 AND seq > 650");
          v.removeCheckpoints();
        }),
      alone: tampered("tail_missing 651", "checkpoint_missing"),
    },
    {
      name: "more is cut off, with the checkpoints, and the tiles are left",
      attack: (v) =>
        v.unguarded(() => {
          v.run("DELETE FROM ledger WHERE workspace_id = 1 AND seq > 505");
          v.run("DELETE FROM payloads WHERE workspace_id = 1 AND seq > 505");
          v.removeCheckpoints(505);
        }),
      alone: tampered("tail_missing 506", "checkpoint_missing"),
    },
    {
      name: "all entries are removed",
      attack: (v) =>
        v.unguarded(() => {
          for (const table of ["ledger", "ledger_tiles", "ledger_index", "ledger_checkpoints", "payloads"]) {
            v.run(`DELETE FROM ${table} WHERE workspace_id = 1`);
          }
        }),
      alone: tampered("tail_missing 1", "checkpoint_missing"),
    },
    {
      name: "another program appends an entry after the tail",
      attack: (v) => {
        const { seq, leaf } = v.row(last(v));
        const bytes = '{"action":"nothing.happened"}';
        v.run("INSERT INTO ledger VALUES (1, ?, ?, ?, ?)", seq + 1, leaf, Oracle.leafHash(bytes), bytes);
      },
      alone: tampered(`tail_unsigned ${NEXT}`, `entry_foreign ${NEXT}`),
    },
    {
      name: "another program appends an entry with an invalid hash after the tail",
      attack: (v) => {
        const { seq, leaf, bytes } = v.row(last(v));
        v.run("INSERT INTO ledger VALUES (1, ?, ?, ?, ?)", seq + 1, leaf, new Uint8Array(32), bytes);
      },
      alone: tampered(`tail_unsigned ${NEXT}`, `entry_changed ${NEXT}`),
    },
  ]);
});

/** Appends a well-formed entry to a chain, as anyone who knows the format can. */
function appendForged(v: Vandal): void {
  const { seq, leaf, bytes } = v.row(last(v));
  const { ts } = JSON.parse(bytes) as { ts: string };
  const approval = draft({ action: "oversight.approve", oversight: { person: "Ada", decision: "approve" } });
  v.append(encodeEntry(approval, { seq: seq + 1, prev: Buffer.from(leaf).toString("hex"), ts }));
}

/** Removes everything after an entry, as if it had never been written. */
function cut(v: Vandal, size: number): void {
  for (const table of ["ledger", "payloads"]) {
    v.run(`DELETE FROM ${table} WHERE workspace_id = 1 AND seq > ?`, size);
  }
  v.removeCheckpoints(size);
}

describe("the signed head:", () => {
  testAttacks([
    {
      name: "a chained entry is appended after the tail",
      attack: appendForged,
      alone: tampered(`tail_unsigned ${NEXT}`),
    },
    {
      name: "the same, and the head is removed, so that there is none to compare with",
      attack: (v) => {
        appendForged(v);
        v.run("DELETE FROM ledger_heads WHERE workspace_id = 1");
      },
      alone: tampered("head_missing"),
    },
    {
      name: "the same, for all workspaces, and the directory claims the version before",
      attack: (v) => {
        appendForged(v);
        v.run("DROP TABLE ledger_heads");
        v.run("DROP TABLE ledger_node_heads");
        for (const statement of WITHOUT_LONG_TEXTS) v.run(statement);
        for (const table of ["meta", "workspaces"]) v.run(`ALTER TABLE ${table} DROP COLUMN seal`);
        v.run(`PRAGMA user_version = ${FIRST_WITH_HEADS - 1}`);
      },
      alone: tampered("head_missing"),
    },
    {
      name: "the last entries are rebuilt",
      attack: async (v) => {
        v.unguarded(() => {
          v.set(last(v) - 1, { bytes: v.forged(last(v) - 1) });
          v.rechain(last(v) - 1);
          v.removeCheckpoints(v.checkpointAt(600));
        });
        await v.rebuild();
      },
      alone: tampered("entries_rewritten 601", "checkpoint_missing"),
    },
    {
      name: "the ledger is cut to an older checkpoint",
      attack: async (v) => {
        v.unguarded(() => cut(v, v.checkpointAt(500)));
        await v.rebuild();
      },
      alone: tampered("tail_missing 501", "checkpoint_missing"),
    },
    {
      name: "the same, and that checkpoint replaces the head",
      attack: async (v) => {
        const size = v.checkpointAt(100);
        v.setHead(v.checkpoint(size));
        v.unguarded(() => cut(v, size));
        await v.rebuild();
      },
      alone: tampered("head_changed"),
      withCheckpoints: tampered("tail_missing 101", "head_changed"),
    },
    {
      name: "the other workspace's head replaces it",
      attack: (v) => v.setHead(v.head(2)),
      alone: tampered("head_of_another_ledger"),
    },
    {
      name: "somebody else has signed it",
      attack: (v) => v.signHead(signAs(STRANGER)),
      alone: tampered("node_head_of_another_key"),
    },
    {
      name: "a letter of it is changed",
      attack: (v) => v.setHead(v.head().replace(/^checkpoints \d+/m, "checkpoints 1")),
      alone: tampered("heads_changed"),
    },
    {
      name: "the heads are removed, and the note of a directory from before heads is restored",
      attack: (v) => {
        v.run("DELETE FROM ledger_heads");
        v.run("DELETE FROM ledger_node_heads");
        v.run("INSERT INTO meta (key, value) VALUES ('ledger_heads', 'unsigned')");
      },
      alone: tampered("head_missing", "head_missing"),
    },
    {
      name: "the head of all is removed",
      attack: (v) => v.run("DELETE FROM ledger_node_heads"),
      alone: tampered("node_head_missing"),
    },
    {
      name: "the same, and the heads are those that an earlier version signed one by one",
      attack: (v) => {
        v.signSingly(v.stolenKey());
        v.run("DELETE FROM ledger_node_heads");
      },
      alone: tampered("node_head_missing", "head_changed", "head_changed"),
    },
    {
      name: "the head of all is that of another node",
      attack: (v) => v.run("INSERT INTO ledger_node_heads SELECT 2, note FROM ledger_node_heads"),
      alone: tampered("node_head_missing"),
    },
    {
      name: "a letter of the head of all is changed",
      attack: (v) => v.setNodeHead(v.nodeHead().replace("\n2\n", "\n3\n")),
      alone: tampered("node_head_changed"),
    },
    {
      name: "an entry is appended after the tail, and the head made to match",
      attack: (v) => {
        appendForged(v);
        v.makeHead();
      },
      alone: tampered("heads_changed"),
    },
    {
      name: "one checkpoint in the middle is dropped",
      attack: (v) =>
        v.unguarded(() =>
          v.run("DELETE FROM ledger_checkpoints WHERE workspace_id = 1 AND size = ?", v.checkpointAt(300)),
        ),
      alone: tampered("checkpoint_missing"),
    },
    {
      name: "one checkpoint in the middle is replaced by another that the key has signed",
      attack: (v) =>
        v.unguarded(() => {
          const size = v.checkpointAt(300);
          v.run("DELETE FROM ledger_checkpoints WHERE workspace_id = 1 AND size = ?", size);
          const note = v.noteBy(v.stolenKey(), size - 1);
          v.run("INSERT INTO ledger_checkpoints VALUES (1, ?, ?, 0)", size - 1, note);
        }),
      alone: tampered("checkpoint_replaced"),
    },
    {
      name: "a workspace is wiped, with everything it had",
      attack: (v) =>
        v.unguarded(() => {
          const tables = ["ledger", "ledger_tiles", "ledger_index", "ledger_checkpoints", "ledger_heads"];
          for (const table of [...tables, "payloads"]) v.run(`DELETE FROM ${table} WHERE workspace_id = 2`);
          v.run("DELETE FROM tokens WHERE workspace_id = 2");
          v.run("DELETE FROM workspaces WHERE id = 2");
        }),
      alone: tampered("heads_changed", "workspace_missing"),
      withCheckpoints: tampered("workspace_missing", "workspace_missing", "heads_changed"),
    },
  ]);
});
