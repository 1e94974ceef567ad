import { Check, Errors } from "typebox/schema";
import { JsonTooLarge, parseJson } from "../../../base/json-limits.ts";
import type { ListedFile } from "./files.ts";

export const FORMAT = "gatehouse-article14";
/** Incremented when verifiers of the previous version could no longer check a bundle. */
export const FORMAT_VERSION = 1;

/** The claim that a bundle makes about itself. It never claims more than this. */
export const STATEMENT =
  "Evidence supporting human oversight under Article 14 of Regulation (EU) 2024/1689, and record-keeping under its " +
  "Articles 12, 19 and 26. It shows what this gateway recorded. It is not a conformity assessment and does not claim that " +
  "any obligation is met.";

/** `manifest.json`. Hashes are in hex where people compare them and in base64 in proofs, as elsewhere in the API. */
export interface Manifest {
  readonly format: typeof FORMAT;
  readonly version: typeof FORMAT_VERSION;
  readonly statement: string;
  /** `gatehouse/<instance>/<workspace>`, as in the checkpoints. */
  readonly origin: string;
  readonly workspace: string;
  /** Never before the last entry's time, even if the clock was set back. */
  readonly created_at: string;
  readonly created_by: { readonly actor: string; readonly person?: string; readonly role?: string };
  readonly program: { readonly name: string; readonly version: string; readonly commit?: string };
  readonly range: BundleRange;
  /** The filters that excluded entries of the range. */
  readonly filters: BundleFilters;
  readonly counts: { readonly total: number; readonly included: number; readonly withheld: number };
  readonly tree: BundleTree;
  /** The entries just outside the range. They prove that no entry of the period is outside it. */
  readonly edges: BundleEdges;
  /** The verifier key for the checkpoint and this manifest. */
  readonly key: string;
  /** Oldest first. */
  readonly key_changes: readonly KeyChangeProof[];
  readonly retention: {
    /** Days for which prompts, outputs and arguments are kept. Entries are kept forever. */
    readonly payload_days: number;
  };
  readonly files: { readonly [name in ListedFile]: BundleFileDigest };
}

/** The entries covered, by time: `from` inclusive, `to` exclusive. If there are none, `last` is `first` - 1. */
export interface BundleRange {
  readonly first: number;
  readonly last: number;
  readonly from?: string;
  readonly to?: string;
  /** The UTC day, if one was requested; `from` and `to` delimit the same day. */
  readonly date?: string;
}

export interface BundleFilters {
  readonly agent?: string;
  readonly actor?: string;
  readonly action?: string;
  readonly tier?: number;
}

/** The tree that the checkpoint signs, with the parts of it outside the range. */
export interface BundleTree {
  readonly size: number;
  /** Hex. */
  readonly root: string;
  /** Base64 of the complete subtrees left of the range, from left to right. */
  readonly before: readonly string[];
  /** Base64 of the complete subtrees right of the range. */
  readonly after: readonly string[];
}

/** Each edge is present if the period is limited on that side and there is an entry beyond it. */
export interface BundleEdges {
  readonly before?: EntryProof;
  readonly after?: EntryProof;
}

export interface EntryProof {
  /** The entry's bytes. */
  readonly entry: string;
  /** Base64; of the entry in the bundle's tree. */
  readonly inclusion: readonly string[];
}

/** Proof that a key handed over to the next one: the older key signed a tree whose last entry names both keys. */
export interface KeyChangeProof {
  /** The signed note of the tree that ends with the entry. */
  readonly checkpoint: string;
  /** The entry's bytes. */
  readonly entry: string;
  /** Base64; of the entry in that tree. */
  readonly inclusion: readonly string[];
  /** Base64; proves that the bundle's tree begins with that tree. */
  readonly consistency: readonly string[];
}

export interface BundleFileDigest {
  /** Hex. */
  readonly sha256: string;
  /** Bytes. */
  readonly size: number;
}

const text = { type: "string", minLength: 1, maxLength: 500 } as const;
const time = { type: "string", pattern: "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$" } as const;
const count = { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const;
const hex = { type: "string", pattern: "^[0-9a-f]{64}$" } as const;
const hashes = {
  type: "array",
  maxItems: 128,
  items: { type: "string", minLength: 44, maxLength: 44 },
} as const;
const proof = {
  type: "object",
  required: ["entry", "inclusion"],
  properties: { entry: { type: "string", maxLength: 256_000 }, inclusion: hashes },
} as const;
const file = {
  type: "object",
  required: ["sha256", "size"],
  properties: { sha256: hex, size: count },
} as const;

/** Fields added by later versions are accepted: their bytes are covered by the signature. */
const SCHEMA = {
  type: "object",
  required: [
    "format",
    "version",
    "statement",
    "origin",
    "workspace",
    "created_at",
    "created_by",
    "program",
    "range",
    "filters",
    "counts",
    "tree",
    "edges",
    "key",
    "key_changes",
    "retention",
    "files",
  ],
  properties: {
    format: { const: FORMAT },
    version: { const: FORMAT_VERSION },
    statement: { type: "string", maxLength: 10_000 },
    origin: text,
    workspace: text,
    created_at: time,
    created_by: {
      type: "object",
      required: ["actor"],
      properties: { actor: text, person: text, role: text },
    },
    program: {
      type: "object",
      required: ["name", "version"],
      properties: { name: text, version: text, commit: text },
    },
    range: {
      type: "object",
      required: ["first", "last"],
      properties: { first: count, last: count, from: time, to: time, date: text },
    },
    filters: {
      type: "object",
      additionalProperties: false,
      properties: { agent: text, actor: text, action: text, tier: count },
    },
    counts: {
      type: "object",
      required: ["total", "included", "withheld"],
      properties: { total: count, included: count, withheld: count },
    },
    tree: {
      type: "object",
      required: ["size", "root", "before", "after"],
      properties: { size: count, root: hex, before: hashes, after: hashes },
    },
    edges: { type: "object", additionalProperties: false, properties: { before: proof, after: proof } },
    key: text,
    key_changes: {
      type: "array",
      maxItems: 100,
      items: {
        type: "object",
        required: ["checkpoint", "entry", "inclusion", "consistency"],
        properties: {
          checkpoint: { type: "string", maxLength: 10_000 },
          entry: { type: "string", maxLength: 10_000 },
          inclusion: hashes,
          consistency: hashes,
        },
      },
    },
    retention: { type: "object", required: ["payload_days"], properties: { payload_days: count } },
    files: {
      type: "object",
      additionalProperties: false,
      required: [
        "entries.ndjson",
        "leaves.txt",
        "oversight.csv",
        "erasures.ndjson",
        "checkpoint.txt",
        "key.txt",
        "report.html",
        "verify.html",
      ],
      properties: {
        "entries.ndjson": file,
        "leaves.txt": file,
        "oversight.csv": file,
        "erasures.ndjson": file,
        "checkpoint.txt": file,
        "key.txt": file,
        "report.html": file,
        "verify.html": file,
      },
    },
  },
} as const;

const NEWER = {
  type: "object",
  required: ["format", "version"],
  properties: { format: { const: FORMAT }, version: { type: "integer", minimum: FORMAT_VERSION + 1 } },
} as const;

/** An error in a manifest, described for people. */
export class ManifestError extends Error {
  override readonly name = "ManifestError";
}

/** The manifest has a version that this program does not know. */
export class NewerManifest extends ManifestError {}

export function formatManifest(manifest: Manifest): string {
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

/**
 * @throws NewerManifest
 * @throws ManifestError if the text is not a manifest or its numbers contradict each other; names the field
 */
export function parseManifest(json: string): Manifest {
  let value: unknown;
  try {
    value = parseJson(json);
  } catch (error) {
    throw new ManifestError(
      error instanceof JsonTooLarge ? `it is too large: ${error.message}` : "it is not JSON",
    );
  }
  if (Check(NEWER, value)) {
    throw new NewerManifest(
      `its format version is ${value.version}; this program knows version ${FORMAT_VERSION}`,
    );
  }
  if (!Check(SCHEMA, value)) {
    const [first] = Errors(SCHEMA, value)[1];
    throw new ManifestError(`${first?.instancePath || "it"} ${first?.message ?? "is not valid"}`);
  }
  const { range, counts, tree } = value;
  if (value.origin.slice(value.origin.lastIndexOf("/") + 1) !== value.workspace) {
    throw new ManifestError("/origin names a different workspace from /workspace");
  }
  checkPeriod(value);
  if (range.first < 1 || range.last < range.first - 1 || range.last > tree.size) {
    throw new ManifestError("/range does not fit into a tree of that size");
  }
  if (range.from === undefined && range.first !== 1) {
    throw new ManifestError("/range/first is not 1, although there is no /range/from");
  }
  if (range.to === undefined && range.last !== tree.size) {
    throw new ManifestError("/range/last is not the last entry, although there is no /range/to");
  }
  if (counts.total !== range.last - range.first + 1 || counts.included + counts.withheld !== counts.total) {
    throw new ManifestError("/counts do not add up to the range");
  }
  return value;
}

const DAY_MS = 86_400_000;

/** Compares times as strings, which is correct for this format. @throws ManifestError */
function checkPeriod({
  created_at,
  range: { from, to, date },
}: Pick<Manifest, "created_at" | "range">): void {
  for (const [name, time] of Object.entries({ created_at, "range/from": from, "range/to": to })) {
    if (time !== undefined && !isTime(time)) throw new ManifestError(`/${name} is not a time`);
  }
  if (from !== undefined && to !== undefined && from >= to) {
    throw new ManifestError("/range/to is not later than /range/from");
  }
  if (date === undefined) return;
  const start = `${date}T00:00:00.000Z`;
  if (!isTime(start)) throw new ManifestError("/range/date is not a day");
  const end = new Date(Date.parse(start) + DAY_MS).toISOString();
  // If a request names a day and times, the period is their intersection.
  if (from === undefined || to === undefined || from < start || to > end) {
    throw new ManifestError("/range/date is not the day of /range/from and /range/to");
  }
}

function isTime(text: string): boolean {
  const time = Date.parse(text);
  return !Number.isNaN(time) && new Date(time).toISOString() === text;
}
