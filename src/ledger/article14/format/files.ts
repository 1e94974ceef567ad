/** The files of a bundle, in the order in which they stand in it: each is written when all that it says is known. */
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

/** The files that the manifest vouches for: all but itself and its signature. */
export type ListedFile = Exclude<BundleFile, "manifest.json" | "manifest.sig">;

export const LISTED_FILES: readonly ListedFile[] = BUNDLE_FILES.filter(
  (name) => name !== "manifest.json" && name !== "manifest.sig",
);

export function isBundleFile(name: string): name is BundleFile {
  return (BUNDLE_FILES as readonly string[]).includes(name);
}
