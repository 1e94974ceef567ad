/** The files of a bundle, in order. Each is written once everything it states is known. */
export const BUNDLE_FILES = [
  "entries.ndjson",
  "leaves.txt",
  "oversight.csv",
  "erasures.ndjson",
  "checkpoint.txt",
  "key.txt",
  "report.html",
  "verify.html",
  "manifest.json",
  "manifest.sig",
] as const;

export type BundleFile = (typeof BUNDLE_FILES)[number];

/** Files whose digests are in the manifest: all except the manifest and its signature. */
export type ListedFile = Exclude<BundleFile, "manifest.json" | "manifest.sig">;

export const LISTED_FILES: readonly ListedFile[] = BUNDLE_FILES.filter(
  (name) => name !== "manifest.json" && name !== "manifest.sig",
);

export function isBundleFile(name: string): name is BundleFile {
  return (BUNDLE_FILES as readonly string[]).includes(name);
}
