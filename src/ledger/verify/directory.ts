import { dirname } from "node:path";
import { systemClock } from "../../base/clock.ts";
import { OperatorError } from "../../base/errors.ts";
import type { SecretKey } from "../../store/secret-key.ts";
import { DatabaseUnreadable, openReadOnly, type ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import type { SharedCopy } from "../../store/sqlite/shared-copy.ts";
import { readKeyUse } from "../keys/file.ts";
import type { KeyUse } from "../keys/signing-key.ts";
import type { SignedCheckpoint } from "../proof/checkpoint.ts";
import {
  type TrustAnchors,
  type Verdict,
  type Verification,
  type VerifyTools,
  verdictOf,
} from "../proof/verification.ts";
import { coverageOf, uncheckedOf } from "./coverage.ts";
import { checkIntegrity, isVerifiable, reportUnreadable } from "./database-file.ts";
import { FIRST_WITH_HEADS } from "./head.ts";
import { checkNamed, compareKeys, Keyring, storedKeys } from "./keyring.ts";
import { type LedgerParts, type WalkedLedger, walkLedger } from "./ledger.ts";
import { readHeads, reportAge, type StoredHeads } from "./node-head.ts";
import { counted, VerificationReport } from "./report.ts";
import { checkSchema } from "./schema.ts";
import { checkSealedRows } from "./sealed-rows.ts";
import { reportCopy, sharedHeads } from "./shared-heads.ts";
import {
  checkCreated,
  checkOrphans,
  isBegun,
  reportEmpty,
  storedWorkspaces,
  type VerifiedWorkspace,
} from "./workspaces.ts";

/** The result for one workspace's ledger. */
export interface LedgerVerification extends Verification {
  readonly workspace: string;
}

/** Its own findings and facts concern the database as a whole. The verdict is the worst of all. */
export interface DirectoryVerification extends Verification {
  readonly ledgers: readonly LedgerVerification[];
}

export interface DirectoryRequest {
  /** Path of the database file in a data directory. */
  readonly path: string;
  readonly trust: TrustAnchors;
  /** Null means all workspaces. */
  readonly workspace: string | null;
  /** The key of the rows' seals. Without it they are not checked. */
  readonly secretKey?: SecretKey | undefined;
  /** If the file is a copy of a store that nodes share: what it has no place for. */
  readonly shared?: SharedCopy | undefined;
}

/** The first schema with a tree, checkpoints and keys. */
const FIRST_WITH_CHECKPOINTS = 4;
/** Maximum number of attempts if others write while the file is read without isolation. */
const TRIES = 3;

/**
 * Verifies all of a data directory's evidence: the schema, the pages, each entry's bytes, the chain, the tree, all
 * checkpoints, and the texts kept alongside the entries. It needs no server, may run alongside one, and writes nothing.
 *
 * @throws OperatorError with exit code 2 if there is no such workspace
 */
export async function verifyDirectory(
  request: DirectoryRequest,
  tools: VerifyTools,
): Promise<DirectoryVerification> {
  for (let attempt = 1; ; attempt++) {
    const examination = new DirectoryExamination(request, tools);
    const changed = await examination.run();
    const result = examination.result();
    // Do not report concurrent writes as tampering.
    if (result.verdict === "holds" || changed === "no") return result;
    if (changed === "apart" && attempt > 1) return result;
    if (attempt < TRIES) continue;
    if (changed === "unopened") return result;
    return unsettled();
  }
}

function unsettled(): DirectoryVerification {
  const report = new VerificationReport();
  report.undecided(
    "files_changed",
    "The files changed during every attempt to read them, so the result may mix two states. Verify again while no server is starting or stopping on them.",
  );
  return { verdict: "undecided", findings: report.findings, facts: [], ledgers: [] };
}

interface WalkedWorkspace {
  readonly workspace: VerifiedWorkspace;
  readonly report: VerificationReport;
  readonly walked: WalkedLedger | null;
}

/** One reading of the file. */
class DirectoryExamination {
  readonly #report = new VerificationReport();
  readonly #request: DirectoryRequest;
  readonly #tools: VerifyTools;
  readonly #ledgers: WalkedWorkspace[] = [];

  constructor(request: DirectoryRequest, tools: VerifyTools) {
    this.#request = request;
    this.#tools = tools;
  }

  /**
   * @returns whether the files changed during the reading: `no`; `apart`, isolated from what was read; or `maybe`, in
   *   what was read. `unopened`: they could not be opened, possibly because a server was starting or stopping.
   */
  async run(): Promise<"no" | "apart" | "maybe" | "unopened"> {
    let database: ReadOnlyDatabase | undefined;
    try {
      database = openReadOnly(this.#request.path);
      await this.#examine(database);
      if (!database.hasChanged()) return "no";
      return database.isShared ? "apart" : "maybe";
    } catch (error) {
      if (!(error instanceof DatabaseUnreadable)) throw error;
      reportUnreadable(this.#report, error);
      if (database === undefined) return "unopened";
      return database.hasChanged() ? "maybe" : "no";
    } finally {
      database?.close();
    }
  }

  result(): DirectoryVerification {
    const { findings, facts } = this.#report;
    const ledgers = this.#ledgers.map(({ workspace, report }) => ({
      workspace: workspace.name,
      verdict: verdictOf(report.findings),
      findings: report.findings,
      facts: report.facts,
    }));
    return {
      verdict: worstOf([verdictOf(findings), ...ledgers.map(({ verdict }) => verdict)]),
      findings,
      facts,
      ledgers,
    };
  }

  async #examine(database: ReadOnlyDatabase): Promise<void> {
    const report = this.#report;
    if (!isVerifiable(database, report) || !checkSchema(database, report)) return;
    if (database.schemaVersion < FIRST_WITH_CHECKPOINTS) {
      report.undecided(
        "schema_old",
        "The data directory was written by a version of Gatehouse that signed no checkpoints. Start this version on it once. Entries written from then on can be verified.",
      );
      return;
    }
    const keyUse = readKeyUse(dirname(this.#request.path));
    if (reportAge(database, keyUse, report)) {
      // Already reported: the heads that the key signed are not there to be checked.
    } else if (database.schemaVersion < FIRST_WITH_HEADS) {
      report.undecided(
        "schema_unsigned",
        "The data directory was written by a version of Gatehouse that signed the heads of its ledgers only at intervals. Nothing in it shows whether entries were added after the last checkpoint, or the last entries removed. Start this version on it once. Entries written from then on can be verified.",
      );
    }
    checkIntegrity(database, report);
    if (this.#request.shared) reportCopy(this.#request.shared, report);
    const { trust } = this.#request;
    const instance = database.get<{ value: string }>(
      "SELECT value FROM main.meta WHERE key = 'instance'",
    )?.value;
    const origins = `gatehouse/${instance ?? ""}/`;
    const stored = storedKeys(database, report);
    const keys = new Keyring(stored, trust, this.#tools);
    compareKeys(stored, trust.keys, origins, report);
    const workspaces = this.#workspaces(database, origins);
    this.#checkFit(origins);
    const heads = await this.#readHeads(database, keys, keyUse, origins);
    for (const workspace of workspaces) await this.#walk({ database, keys, heads }, workspace, origins);
    heads.conclude(this.#ledgers.map(({ report: ledger }) => ledger));
    checkSealedRows(database, this.#request.secretKey, this.#report, !this.#request.shared);
    this.#checkKeys(stored);
    if (isBegun(workspaces, stored, heads)) this.#checkCreated(workspaces);
    else reportEmpty(keyUse, report);
    this.#conclude(keys, origins);
  }

  /**
   * Runs only if all entries were read and are unchanged. Otherwise the entry that names a key may be among the
   * others.
   */
  #checkKeys(stored: readonly Uint8Array[]): void {
    if (!this.#isWhole) return;
    const named = new Set(this.#ledgers.flatMap(({ walked }) => [...(walked?.named ?? [])]));
    checkNamed(stored, named, this.#report);
  }

  /** Like `#checkKeys`: the entry that created a workspace may be missing. */
  #checkCreated(workspaces: readonly VerifiedWorkspace[]): void {
    if (!this.#isWhole) return;
    const created = new Set(this.#ledgers.flatMap(({ walked }) => [...(walked?.created ?? [])]));
    checkCreated(workspaces, created, this.#report);
  }

  /** Whether all entries of all ledgers were read and are unchanged. */
  get #isWhole(): boolean {
    return (
      this.#request.workspace === null &&
      this.#ledgers.every(
        ({ report, walked }) => walked !== null && verdictOf(report.findings) !== "tampered",
      )
    );
  }

  /** The requested workspaces. */
  #workspaces(database: ReadOnlyDatabase, origins: string): readonly VerifiedWorkspace[] {
    const all = storedWorkspaces(database, this.#report);
    checkOrphans(database, all, this.#report);
    const { workspace, trust } = this.#request;
    const known = new Set(all.map(({ name }) => name));
    for (const name of namesOf(trust.checkpoints, origins)) {
      if (known.has(name) || (workspace !== null && workspace !== name)) continue;
      this.#report.tampered(
        "workspace_missing",
        `A checkpoint of the workspace ${JSON.stringify(name)} was supplied, but this workspace no longer exists.`,
      );
      known.add(name);
    }
    if (workspace === null) return all;
    if (!known.has(workspace)) {
      throw new OperatorError(
        `--workspace: there is no workspace ${JSON.stringify(workspace)}`,
        undefined,
        2,
      );
    }
    return all.filter(({ name }) => name === workspace);
  }

  /** A file of checkpoints may include other ledgers' checkpoints. If it contains no others, it is the wrong file. */
  #checkFit(origins: string): void {
    const { trust, workspace } = this.#request;
    const [first] = trust.checkpoints;
    const names = namesOf(trust.checkpoints, origins);
    if (!first || (workspace === null ? names.size > 0 : names.has(workspace))) return;
    this.#report.undecided(
      "no_checkpoint_of_this_ledger",
      `None of the ${counted(trust.checkpoints.length)} checkpoints supplied belongs to a ledger verified here: they name ${JSON.stringify(first.checkpoint.origin)}, but the ledgers here begin with ${origins}${workspace ?? ""}.`,
    );
  }

  #readHeads(
    database: ReadOnlyDatabase,
    keys: Keyring,
    keyUse: KeyUse | null,
    origins: string,
  ): Promise<StoredHeads> {
    const { shared } = this.#request;
    if (shared) return Promise.resolve(sharedHeads(shared.tails));
    const origin = origins.replace(/\/$/, "");
    return readHeads({
      ...{ database, origin, tools: this.#tools, report: this.#report },
      keys: keys.verifierKeys(origin),
      storedKeys: keys.stored,
      keyUse,
    });
  }

  async #walk(
    parts: Pick<LedgerParts, "database" | "keys" | "heads">,
    workspace: VerifiedWorkspace,
    origins: string,
  ): Promise<void> {
    const report = new VerificationReport(workspace.name);
    const origin = `${origins}${workspace.name}`;
    let walked: WalkedLedger | null = null;
    try {
      walked = await walkLedger({
        ...{ ...parts, origin, report, tools: this.#tools, workspaceId: workspace.id },
        now: systemClock.now(),
        given: this.#request.trust.checkpoints.filter(({ checkpoint }) => checkpoint.origin === origin),
      });
    } catch (error) {
      if (!(error instanceof DatabaseUnreadable)) throw error;
      reportUnreadable(report, error);
    }
    this.#ledgers.push({ workspace, report, walked });
  }

  /** Decides what each ledger's checkpoints prove, now that all ledgers have shown which keys are trusted. */
  #conclude(keys: Keyring, origins: string): void {
    const { trust } = this.#request;
    const evidence = this.#ledgers.flatMap(({ walked }) => (walked ? [walked] : []));
    const allKept = evidence.flatMap(({ kept }) => kept);
    const sets = keys.trustedSets(evidence, allKept);
    // A supplied key that is not one of these has already been reported.
    const isKeyKnown =
      trust.keys.length === 0 || trust.keys.some(({ publicKey }) => keys.isStored(publicKey.toHex()));
    for (const { workspace, report, walked } of this.#ledgers) {
      if (!walked) continue;
      const { size, signed, kept, checkpoints, hasHead, unvouchedErasures } = walked;
      const origin = `${origins}${workspace.name}`;
      const covered = Math.min(...sets.map((trusted) => coveredBy(trusted, signed)));
      const claimed = Math.max(0, ...signed.values());
      if (checkpoints === 0 && !hasHead) {
        report.undecided(
          "no_checkpoint",
          "No stored checkpoint is signed by the ledger's key, not even the one of the empty ledger, which every ledger begins with: nothing vouches for this chain. Supply one that was kept elsewhere, with --checkpoint.",
        );
      } else if (claimed > covered && isKeyKnown) {
        report.undecided(
          "key_unvouched",
          `The only key that vouches for the entries from ${covered + 1} to ${claimed} is one that no trusted key has handed over to: it replaced a lost key, or was added by somebody else. If you know that it is the ledger's key, supply it with --key.`,
          covered + 1,
        );
      }
      if (
        (checkpoints > 0 || hasHead) &&
        unvouchedErasures > 0 &&
        verdictOf(report.findings) !== "tampered"
      ) {
        report.undecided(
          "payload_unaccounted",
          `${counted(unvouchedErasures)} texts are missing, and the records of their erasure come after the last checkpoint: anyone who can write the file could have added them. If a server is running, verify again once it has signed the next checkpoint.`,
        );
      }
      if (size > 0) report.fact("Vouched for", coverageOf(size, covered));
      const keptUpTo = kept.reduce((most, { covers }) => Math.max(most, covers), 0);
      const unchecked = uncheckedOf(trust, keptUpTo, this.#request.workspace !== null);
      report.fact("Not checked", unchecked.join("; "));
      const key = keys.current(origin);
      if (key !== undefined) {
        report.fact(
          "Key",
          trust.keys.length > 0
            ? key
            : `${key} (stored with the ledger: compare it with a copy that was kept elsewhere)`,
        );
      }
    }
  }
}

/** The largest number of entries that one of the keys has signed. */
function coveredBy(trusted: ReadonlySet<string>, signed: ReadonlyMap<string, number>): number {
  return Math.max(0, ...[...signed].filter(([key]) => trusted.has(key)).map(([, upTo]) => upTo));
}

/** The workspaces of this directory that have checkpoints among these. */
function namesOf(checkpoints: readonly SignedCheckpoint[], origins: string): Set<string> {
  const all = checkpoints.map(({ checkpoint }) => checkpoint.origin);
  return new Set(
    all.filter((origin) => origin.startsWith(origins)).map((origin) => origin.slice(origins.length)),
  );
}

function worstOf(verdicts: readonly Verdict[]): Verdict {
  return (
    verdicts.find((verdict) => verdict === "tampered") ??
    verdicts.find((verdict) => verdict === "undecided") ??
    "holds"
  );
}
