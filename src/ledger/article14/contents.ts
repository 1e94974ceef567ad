import { COMMIT, VERSION } from "../../base/version.ts";
import type { EvidenceReader } from "../reading/evidence.ts";
import { type ArchiveFile, digested } from "./archive.ts";
import type { BundleParts, BundleRequest } from "./bundle.ts";
import { readEdges } from "./edges.ts";
import { entryLines, erasureLines, oversightLines } from "./evidence-files.ts";
import { CappedList } from "./figures/capped.ts";
import { ReportFigures } from "./figures/figures.ts";
import { OverseerRegister, WITHHELD_OVERSEERS } from "./figures/overseers.ts";
import { readEntryFields } from "./format/entry.ts";
import type { ErasureLine } from "./format/erasures.ts";
import { LISTED_FILES, type ListedFile } from "./format/files.ts";
import {
  type BundleFileDigest,
  FORMAT,
  FORMAT_VERSION,
  formatManifest,
  type Manifest,
  STATEMENT,
} from "./format/manifest.ts";
import { RotationList } from "./key-changes.ts";
import { readCheckpoints } from "./report/checkpoints.ts";
import { reportPage } from "./report/page.ts";
import { type SignedTree, type Snapshot, signTree } from "./snapshot.ts";
import { encoded, leafLines } from "./sources.ts";

/** Maximum number of erasures listed individually in the report. */
const ERASURES_LISTED = 60;

/**
 * The files of a bundle in order, each produced while it is read: the last ones contain the digests of the first
 * ones.
 */
export async function* bundleFiles(
  parts: BundleParts,
  request: BundleRequest,
  evidence: EvidenceReader,
  snapshot: Snapshot,
): AsyncGenerator<ArchiveFile, void> {
  const { db, keys } = parts;
  const { workspace } = request;
  const { from, to: _, ...filter } = request.filter;
  const isNarrowed = request.seesOnly !== undefined;
  const source = { db, workspaceId: workspace.id, evidence, filter, snapshot, isNarrowed };
  const tree = await signTree(parts, request, snapshot);
  const figures = new ReportFigures(await timeOf(snapshot.shown.first), await timeOf(snapshot.shown.last));
  const erasures = new CappedList<ErasureLine>(ERASURES_LISTED);
  const overseers = new OverseerRegister(snapshot.last);
  const rotations = new RotationList();
  const digests = new Map<ListedFile, BundleFileDigest>();
  const listed = (name: ListedFile, pieces: AsyncIterable<string> | Iterable<string>): ArchiveFile => ({
    name,
    chunks: digested(encoded(pieces), (digest) => digests.set(name, digest)),
  });

  yield listed(
    "entries.ndjson",
    entryLines(source, (bytes) => figures.add(bytes)),
  );
  yield listed("leaves.txt", leafLines(evidence, snapshot));
  yield listed("oversight.csv", oversightLines(source));
  yield listed(
    "erasures.ndjson",
    erasureLines(
      source,
      (line) => erasures.add(line),
      (entry) => {
        overseers.add(entry);
        rotations.add(entry);
      },
    ),
  );
  yield listed("checkpoint.txt", [tree.note]);
  yield listed(
    "key.txt",
    [tree.keys.current, ...tree.keys.former.toReversed()].map((key) => `${key}\n`),
  );

  const about = {
    ...manifestHead(parts, request, snapshot, tree, figures.entries),
    edges: await readEdges(source, request.filter),
    key_changes: await rotations.proofs(source),
  };
  const report = reportPage({
    about,
    figures,
    erasures,
    overseers: isNarrowed ? WITHHELD_OVERSEERS : overseers.since(from),
    checkpoints: await readCheckpoints(source, tree),
    oldestEntry: (await timestampOf(1)) ?? null,
  });
  yield listed("report.html", [report]);
  // Loaded at the first export, because it is larger than anything else that would be loaded at startup.
  const { verifyPage } = await import("../verify/bundle/page/page.ts");
  yield listed("verify.html", [verifyPage()]);

  const manifest = new TextEncoder().encode(formatManifest({ ...about, files: filesOf(digests) }));
  yield { name: "manifest.json", chunks: [manifest] };
  if (keys.verifierKeys(workspace.name).current !== tree.keys.current) {
    throw new Error("the ledger's signing key was changed during the export: export again");
  }
  yield { name: "manifest.sig", chunks: encoded([`${keys.signBytes(manifest).toBase64()}\n`]) };

  async function timestampOf(seq: number): Promise<string | undefined> {
    const entry = await evidence.entry(seq);
    return entry && readEntryFields(entry.bytes)?.ts;
  }

  /** Milliseconds. If the entry is missing or unreadable, the snapshot's time. */
  async function timeOf(seq: number): Promise<number> {
    const time = Date.parse((await timestampOf(seq)) ?? "");
    return Number.isNaN(time) ? Date.parse(snapshot.at) : time;
  }
}

function manifestHead(
  { payloadDays }: BundleParts,
  { workspace, filter, date, exportedBy }: BundleRequest,
  { size, first, last, at }: Snapshot,
  tree: SignedTree,
  included: number,
): Omit<Manifest, "files" | "edges" | "key_changes"> {
  // A manifest names an agent but cannot tell agents of the same name apart. Entries of the others are withheld.
  const { from, to, agentSince: _, ...fields } = filter;
  const total = last - first + 1;
  return {
    format: FORMAT,
    version: FORMAT_VERSION,
    statement: STATEMENT,
    origin: tree.origin,
    workspace: workspace.name,
    created_at: at,
    created_by: given(exportedBy),
    program: given({ name: "gatehouse", version: VERSION, commit: COMMIT ?? undefined }),
    range: given({ first, last, from, to, date }),
    filters: given(fields),
    counts: { total, included, withheld: total - included },
    tree: { size, root: tree.root, before: tree.before, after: tree.after },
    key: tree.keys.current,
    retention: { payload_days: payloadDays },
  };
}

type DefinedFields<T> = { [field in keyof T as undefined extends T[field] ? never : field]: T[field] } & {
  [field in keyof T as undefined extends T[field] ? field : never]?: Exclude<T[field], undefined>;
};

/** Removes fields that are undefined. */
function given<T extends object>(fields: T): DefinedFields<T> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as DefinedFields<T>;
}

function filesOf(digests: ReadonlyMap<ListedFile, BundleFileDigest>): Manifest["files"] {
  const files = LISTED_FILES.map((name) => {
    const digest = digests.get(name);
    if (!digest) throw new Error(`${name} was not read to the end`);
    return [name, digest] as const;
  });
  return Object.fromEntries(files) as Manifest["files"];
}
