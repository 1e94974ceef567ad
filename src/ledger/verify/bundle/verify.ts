import {
  BUNDLE_FILES,
  type BundleFile,
  isBundleFile,
  LISTED_FILES,
  type ListedFile,
} from "../../article14/format/files.ts";
import {
  type Manifest,
  ManifestError,
  NewerManifest,
  parseManifest,
} from "../../article14/format/manifest.ts";
import { type TreeHash, treeHash } from "../../proof/hash.ts";
import { NoteError, type VerifierKey } from "../../proof/note.ts";
import {
  type TrustAnchors,
  type Verification,
  type VerifyTools,
  verdictOf,
} from "../../proof/verification.ts";
import { VerificationReport } from "../report.ts";
import { Anchors } from "./anchors.ts";
import { type ArchivedFile, openArchive } from "./archive/archive.ts";
import { ArchiveError, shown } from "./archive/error.ts";
import { LoopYield } from "./breath.ts";
import { FileCursor, LineTooLong, portableHash, type RunningHash } from "./cursor.ts";
import { checkEdges } from "./edges.ts";
import { EntryWalk } from "./entries.ts";
import { ErasureWalk } from "./erasures.ts";
import { bundleFacts } from "./facts.ts";
import { LeafWalk } from "./leaves.ts";
import { OversightWalk } from "./oversight.ts";
import { checkCheckpoint, checkManifestSignature, keyFact } from "./signatures.ts";
import { type BundleKeys, guarded, parseKeys, resolveKeys, SignaturesUnchecked } from "./trust.ts";

export interface BundleTools extends VerifyTools {
  /** Hashes data that arrives in parts, with SHA-256. Default: one that runs on every platform. */
  readonly runningHash?: () => RunningHash;
}

/** Size limit in bytes of a file that is read as a whole. */
const WHOLE_LIMIT = 4_000_000;
/** How many bytes past its listed size a changed file is still read, before unpacking stops. */
const SLACK = 16_000_000;

/**
 * Verifies an Article 14 bundle using only the bundle and what the auditor supplies, without a server or a network.
 * Runs in this program and in browsers. Nothing in the archive is trusted, and memory use does not depend on its
 * length.
 *
 * @param bundle The zip. It is read in parts, at any offset.
 * @throws only the errors of reading `bundle` itself
 */
export async function verifyBundle(
  bundle: Blob,
  trust: TrustAnchors,
  tools: BundleTools,
): Promise<Verification> {
  const report = new VerificationReport();
  try {
    await new BundleCheck(trust, tools, report).run(bundle);
  } catch (error) {
    if (error instanceof ArchiveError) reportArchive(error, report);
    else if (error instanceof SignaturesUnchecked) {
      report.undecided("signatures_unchecked", `Signatures cannot be checked here: ${error.message}.`);
    } else throw error;
  }
  return { verdict: verdictOf(report.findings), findings: report.findings, facts: report.facts };
}

function reportArchive(error: ArchiveError, report: VerificationReport): void {
  if (error.isIncomplete) {
    report.undecided(
      "not_an_archive",
      `The file is not a complete zip archive. It may be truncated: download it again (${error.message}).`,
    );
  } else report.tampered("archive_changed", `No gateway made this archive: ${error.message}.`);
}

class BundleCheck {
  readonly #trust: TrustAnchors;
  readonly #tools: VerifyTools;
  readonly #runningHash: () => RunningHash;
  readonly #report: VerificationReport;
  readonly #hash: TreeHash;
  readonly #files = new Map<BundleFile, ArchivedFile>();
  readonly #cursors = new Map<ListedFile, FileCursor>();
  readonly #breath = new LoopYield();

  constructor(
    trust: TrustAnchors,
    { runningHash = portableHash, ...tools }: BundleTools,
    report: VerificationReport,
  ) {
    this.#trust = trust;
    this.#tools = guarded(tools);
    this.#runningHash = runningHash;
    this.#report = report;
    this.#hash = treeHash(tools.sha256);
  }

  async run(bundle: Blob): Promise<void> {
    if (!(await this.#open(bundle))) return;
    const manifestBytes = await this.#whole("manifest.json");
    const manifest = manifestBytes && this.#parseManifest(manifestBytes);
    if (!manifest) return;
    const keys = await this.#keys(manifest);
    if (!keys) return;
    const signature = await this.#whole("manifest.sig");
    if (signature) {
      await checkManifestSignature(manifestBytes, signature, keys, this.#trust, this.#tools, this.#report);
    }
    const checkpoint = await this.#whole("checkpoint.txt");
    if (checkpoint) await checkCheckpoint(text(checkpoint), manifest, keys, this.#tools, this.#report);
    checkEdges(manifest, this.#hash, this.#report);
    try {
      await this.#walk(manifest, keys);
      await this.#compareFiles(manifest);
    } finally {
      for (const cursor of this.#cursors.values()) await cursor.close();
    }
  }

  /** Finds the files. @returns false if there is nothing to check */
  async #open(bundle: Blob): Promise<boolean> {
    const files = await openArchive(bundle);
    if (!files.some(({ name }) => isBundleFile(name))) {
      this.#report.undecided("not_a_bundle", "The archive contains no file of an Article 14 bundle.");
      return false;
    }
    for (const file of files) {
      if (isBundleFile(file.name)) this.#files.set(file.name, file);
      else {
        this.#report.tampered(
          "file_added",
          `The bundle contains ${shown(file.name)}, which does not belong to it.`,
        );
      }
    }
    for (const name of BUNDLE_FILES) {
      if (!this.#files.has(name))
        this.#report.tampered("file_missing", `${name} is missing from the bundle.`);
    }
    return true;
  }

  #parseManifest(bytes: Uint8Array): Manifest | undefined {
    try {
      return parseManifest(text(bytes));
    } catch (error) {
      if (error instanceof NewerManifest) {
        this.#report.undecided(
          "newer_format",
          `The bundle was made by a newer version (${error.message}). Verify it with that version.`,
        );
      } else if (error instanceof ManifestError) {
        this.#report.tampered("manifest_changed", `manifest.json is invalid: ${error.message}.`);
      } else throw error;
      return undefined;
    }
  }

  async #keys(manifest: Manifest): Promise<BundleKeys | undefined> {
    const bytes = await this.#whole("key.txt");
    if (!bytes) return undefined;
    let inside: readonly VerifierKey[];
    try {
      inside = parseKeys(text(bytes), manifest.origin, this.#tools);
    } catch (error) {
      if (!(error instanceof NoteError)) throw error;
      this.#report.tampered("key_changed", `key.txt is invalid: ${error.message}.`);
      return undefined;
    }
    if (text(bytes).split("\n")[0] !== manifest.key) {
      this.#report.tampered(
        "manifest_contradicts",
        "key.txt does not begin with the key that the manifest names.",
      );
    }
    return resolveKeys(manifest, inside, this.#trust, this.#hash, this.#tools, this.#report);
  }

  /** Reads entries, leaves, decisions and erasures once, in parallel. */
  async #walk(manifest: Manifest, keys: BundleKeys): Promise<void> {
    const open = (name: ListedFile) => this.#cursor(name, manifest.files[name].size + SLACK);
    const [entryFile, leafFile] = [open("entries.ndjson"), open("leaves.txt")];
    const [oversightFile, erasureFile] = [open("oversight.csv"), open("erasures.ndjson")];
    if (!entryFile || !leafFile || !oversightFile || !erasureFile) return;
    const anchors = new Anchors(manifest, this.#trust, this.#report);
    const leaves = new LeafWalk(manifest, leafFile, this.#hash, anchors, this.#report);
    const entries = new EntryWalk(manifest, entryFile, this.#hash, this.#report);
    const oversight = new OversightWalk(oversightFile);
    const erasures = new ErasureWalk(manifest, erasureFile, this.#hash, this.#report);
    const { range, counts, filters } = manifest;
    if (counts.withheld > 0 && Object.keys(filters).length === 0) {
      this.#report.tampered(
        "withheld_without_filter",
        `${counts.withheld} entries of the period are withheld, although the manifest names no filter.`,
      );
    }
    await this.#unpacking(async () => {
      leaves.begin();
      await oversight.begin();
      for (let seq = range.first; seq <= range.last; seq++) {
        const leaf = await leaves.next(seq);
        // Without its leaf, neither an entry nor any later one can be judged.
        if (!leaf) return;
        const entry = await entries.visit(seq, leaf);
        if (entry) {
          await oversight.visit(entry);
          await erasures.visit(entry);
        }
        if (this.#report.isFlooded) break;
        if (this.#breath.isDue) await this.#breath.take();
      }
      if (this.#report.isFlooded) {
        const what = "There are more than a thousand findings of one kind. The rest was not checked.";
        this.#report.tampered("too_many_findings", what);
        await entries.end(false);
        return;
      }
      await entries.end(await leaves.end());
      await oversight.end(this.#report, entries.included === counts.included);
      await erasures.end();
    });
    await anchors.finish(keys, this.#tools);
    const found = { included: entries.included, decisions: oversight.rows, erasures: erasures.lines };
    const { covered } = anchors;
    bundleFacts(manifest, found, keyFact(keys, this.#trust, manifest, covered), covered, this.#report);
  }

  /** Reads what was not read yet, and compares every file with the manifest. */
  async #compareFiles(manifest: Manifest): Promise<void> {
    for (const name of LISTED_FILES) {
      const cursor = this.#cursors.get(name) ?? this.#cursor(name, manifest.files[name].size);
      if (!cursor) continue;
      const isRead = await this.#unpacking(async () => {
        await cursor.drain();
      });
      if (isRead && !cursor.isListed(manifest.files[name])) {
        this.#report.tampered(
          "file_changed",
          `${name} is not the file that the manifest lists: it was changed.`,
        );
      }
    }
  }

  /** @returns false if a file could not be read, which is reported */
  async #unpacking(work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      if (error instanceof LineTooLong) {
        this.#report.tampered("line_too_long", `${error.message}: no gateway wrote it.`);
      } else if (error instanceof ArchiveError) {
        this.#report.tampered("file_damaged", `A file was changed, or damaged in transit: ${error.message}.`);
      } else throw error;
      return false;
    }
  }

  /** A file read as a whole. Undefined if it is missing or far too long, which is reported. */
  async #whole(name: BundleFile): Promise<Uint8Array | undefined> {
    const file = this.#files.get(name);
    if (!file) return undefined;
    const cursor = new FileCursor(file, this.#runningHash(), WHOLE_LIMIT, this.#breath);
    let bytes: Uint8Array | null | undefined;
    await this.#unpacking(async () => {
      bytes = await cursor.all();
    });
    if (bytes === null) this.#report.tampered("file_changed", `${name} is far too long.`);
    if (bytes && name !== "manifest.json" && name !== "manifest.sig") this.#cursors.set(name, cursor);
    else await cursor.close();
    return bytes ?? undefined;
  }

  #cursor(name: ListedFile, most: number): FileCursor | undefined {
    const file = this.#files.get(name);
    if (!file) return undefined;
    const cursor = new FileCursor(file, this.#runningHash(), most, this.#breath);
    this.#cursors.set(name, cursor);
    return cursor;
  }
}

const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

function text(bytes: Uint8Array): string {
  return DECODER.decode(bytes);
}
