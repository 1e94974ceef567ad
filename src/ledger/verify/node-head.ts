import { FIRST_WITH_NODE_HEAD, type ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import type { KeyUse } from "../keys/signing-key.ts";
import { headLeaf, keysDigest, parseNodeHead, type SignedNodeHead } from "../proof/node-head.ts";
import { NoteError, signersOf, type VerifierKey } from "../proof/note.ts";
import { GrowingTree } from "../proof/tree.ts";
import type { VerifyTools } from "../proof/verification.ts";
import { TREE } from "../tree-hash.ts";
import { FIRST_WITH_HEADS } from "./head.ts";
import type { VerificationReport } from "./report.ts";

/** The heads of all ledgers, as stored. */
export interface StoredHeads {
  /** By workspace number. */
  readonly texts: ReadonlyMap<number, string>;
  /** Whether each head is a note signed individually, as in earlier versions. */
  readonly areSingle: boolean;
  /** The keys that have signed exactly these heads together; empty if none has. */
  readonly signers: readonly VerifierKey[];
  /** Whether the directory predates signed heads, and no start has signed them yet. */
  readonly isUnsigned: boolean;
  /** In a store that nodes share: by workspace number, the edge of the tree beside its head. */
  readonly edges?: ReadonlyMap<number, Uint8Array>;
  /** Reports why no key has signed these heads together, unless a ledger's own report explains it. */
  conclude(ledgers: readonly VerificationReport[]): void;
}

export interface StoredHeadsParts {
  readonly database: ReadOnlyDatabase;
  /** `gatehouse/<instance>` */
  readonly origin: string;
  /** All possible signers, under that name. */
  readonly keys: readonly VerifierKey[];
  /** The keys in the database, oldest first. */
  readonly storedKeys: readonly Uint8Array[];
  /** What the key has signed according to its file; null if unknown. */
  readonly keyUse: KeyUse | null;
  readonly tools: VerifyTools;
  /** The report about the database as a whole. */
  readonly report: VerificationReport;
}

const ROWS =
  "SELECT CAST(workspace_id AS TEXT) AS id, note FROM main.ledger_heads ORDER BY ledger_heads.workspace_id";
const NODES = "SELECT CAST(node AS TEXT) AS node, note FROM main.ledger_node_heads";
const UNSIGNED = "SELECT 1 FROM main.meta WHERE key = 'ledger_heads'";
const SINGLE = /\n\n— /;

/**
 * Reads all heads and checks whether they were signed together. Problems with that signature are reported by
 * `conclude`.
 */
export async function readHeads(parts: StoredHeadsParts): Promise<StoredHeads> {
  const { database, keyUse, report } = parts;
  const rows =
    database.schemaVersion < FIRST_WITH_HEADS ? [] : [...database.rows<{ id: string; note: unknown }>(ROWS)];
  const texts = new Map(rows.map(({ id, note }) => [Number(id), String(note)]));
  const hasSigned = keyUse === "ledger_heads" || keyUse === "node_head";
  const isUnsigned = rows.length === 0 && !hasSigned && database.get(UNSIGNED) !== undefined;
  const none = { texts, areSingle: true, signers: [], isUnsigned, conclude: () => {} };
  if (database.schemaVersion < FIRST_WITH_NODE_HEAD) return none;
  const nodes = [...database.rows<{ node: string; note: unknown }>(NODES)];
  const [first] = nodes;
  if (!first || nodes.length > 1 || first.node !== "1") {
    if (nodes.length === 0 && rows.length === 0) return none;
    const isUpgrade =
      nodes.length === 0 && keyUse !== "node_head" && [...texts.values()].every((text) => SINGLE.test(text));
    if (isUpgrade) {
      report.undecided(
        "head_unsigned",
        "The heads of the ledgers are signed individually and not together yet: the first start of a version that signs them together was interrupted. Start this version on the directory once, and verify again.",
      );
      return none;
    }
    report.tampered(
      "node_head_missing",
      "The signed head of all ledgers, which every commit of a server writes, is missing or not the only one: rows were removed or added.",
    );
    return { ...none, areSingle: false };
  }
  const { signers, problem } = await verifyTogether(parts, String(first.note), [...texts.values()]);
  return {
    ...{ texts, areSingle: false, signers, isUnsigned },
    conclude(ledgers) {
      if (problem && !ledgers.some((ledger) => ledger.has(problem.isExplainedBy))) {
        report.tampered(problem.code, problem.message);
      }
    },
  };
}

/**
 * Reports a database with the schema of a version that did not yet sign what its key has signed. @returns whether it
 * was reported
 */
export function reportAge(
  database: ReadOnlyDatabase,
  keyUse: KeyUse | null,
  report: VerificationReport,
): boolean {
  const first = { none: 0, ledger_heads: FIRST_WITH_HEADS, node_head: FIRST_WITH_NODE_HEAD }[
    keyUse ?? "none"
  ];
  if (database.schemaVersion >= first) return false;
  report.tampered(
    "head_missing",
    "The database claims to be from an earlier version, but the key file next to it has signed heads that this version did not sign: the signed heads were removed, or the database is older than its key file.",
  );
  return true;
}

interface NodeHeadProblem {
  readonly code: string;
  readonly message: string;
  /** Whether a ledger's finding with this code explains the problem. */
  isExplainedBy(code: string): boolean;
}

interface Together {
  readonly signers: readonly VerifierKey[];
  readonly problem: NodeHeadProblem | null;
}

async function verifyTogether(
  { origin, keys, storedKeys, tools, report }: StoredHeadsParts,
  text: string,
  heads: readonly string[],
): Promise<Together> {
  let signed: SignedNodeHead;
  let signers: readonly VerifierKey[];
  try {
    signed = parseNodeHead(text);
    signers = signed.head.origin === origin ? await signersOf(signed.note, keys, tools.verifySignature) : [];
  } catch (error) {
    if (!(error instanceof NoteError)) throw error;
    return unsigned(
      "node_head_changed",
      `The signed head of all ledgers is invalid: ${error.message}. It was changed.`,
    );
  }
  if (signers.length === 0) {
    return unsigned(
      "node_head_of_another_key",
      "The head of all ledgers is not signed by any of the ledgers' keys: somebody else made it, or the keys were changed.",
      // If the checkpoints are also signed only by unknown keys, the keys were changed.
      (code) => code === "checkpoint_of_another_key",
    );
  }
  if (keysDigest(tools.sha256, storedKeys).toHex() !== signed.head.keys.toHex()) {
    report.tampered(
      "key_changed",
      "The ledgers' keys are not those stored when the heads of the ledgers were signed: rows were added, removed or changed.",
    );
  }
  const tree = new GrowingTree(TREE);
  for (const head of heads) tree.append(headLeaf(TREE, head));
  if (signed.head.count === tree.size && signed.head.root.toHex() === tree.root().toHex()) {
    return { signers, problem: null };
  }
  return unsigned(
    "heads_changed",
    "The heads of the ledgers are not those that were signed together: the evidence of a workspace was restored to an earlier state, or its head was changed. A checkpoint that was kept elsewhere shows which.",
    (code) => code.startsWith("head_"),
  );
}

function unsigned(
  code: string,
  message: string,
  isExplainedBy: NodeHeadProblem["isExplainedBy"] = () => false,
): Together {
  return { signers: [], problem: { code, message, isExplainedBy } };
}
