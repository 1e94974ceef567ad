import { type Dirent, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, extname, join, sep } from "node:path";
import { OperatorError } from "../../base/errors.ts";
import type { ContentType } from "../../vault/read/document.ts";

/** Media types by file extension. */
const TYPES: Readonly<Record<string, ContentType>> = {
  ".txt": "text/plain",
  ".text": "text/plain",
  ".md": "text/markdown",
  ".markdown": "text/markdown",
  ".html": "text/html",
  ".htm": "text/html",
  ".xhtml": "application/xhtml+xml",
  ".pdf": "application/pdf",
  ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  ".csv": "text/csv",
  ".tsv": "text/csv",
  ".json": "application/json",
};

export const EXTENSIONS = Object.keys(TYPES);

/** Folder of third-party files. Hidden folders are skipped too. */
const PASSED_BY = "node_modules";

export interface DocumentFile {
  /** The path as displayed, below the given path. */
  readonly path: string;
  /** The real path: the same file is the same document, whatever path was given for it. */
  readonly real: string;
  readonly type: string;
}

/** A file that is not sent, and why. */
export interface SkippedFile {
  readonly path: string;
  readonly reason: string;
  /** The extension, if it is the only reason: there may be many such files. */
  readonly ending?: string;
}

export interface FileScan {
  readonly files: readonly DocumentFile[];
  readonly skipped: readonly SkippedFile[];
  readonly failed: readonly SkippedFile[];
}

export interface FindOptions {
  /** Only these files within folders. A pattern without `/` is compared with the file name. */
  readonly include?: readonly string[];
  /** Neither these files nor these folders. */
  readonly exclude?: readonly string[];
  /** Media type of files named explicitly, regardless of extension. */
  readonly type?: string;
  /** A folder that is never read: the data directory, which contains secrets. */
  readonly private: string;
}

/**
 * Finds the files for the given paths, in order, with each folder's files sorted and no duplicates. Symbolic links
 * inside folders are not followed.
 * @throws OperatorError for a missing path, or a file of unknown type
 */
export function findFiles(paths: readonly string[], options: FindOptions): FileScan {
  const search = new FileSearch(paths, options);
  for (const path of paths) search.take(path);
  return search.found();
}

class FileSearch {
  readonly #files = new Map<string, DocumentFile>();
  readonly #skipped: SkippedFile[] = [];
  readonly #failed: SkippedFile[] = [];
  readonly #options: FindOptions;
  readonly #private: string;
  readonly #roots: readonly string[];
  readonly #isIncluded: PathTest;
  readonly #isExcluded: PathTest;

  constructor(paths: readonly string[], options: FindOptions) {
    this.#options = options;
    this.#private = realOf(options.private) ?? options.private;
    this.#roots = paths.map(realPath);
    this.#isIncluded = options.include ? pathTest(options.include) : () => true;
    this.#isExcluded = pathTest(options.exclude ?? []);
  }

  found(): FileScan {
    return { files: [...this.#files.values()], skipped: this.#skipped, failed: this.#failed };
  }

  /** A path given on the command line. */
  take(path: string): void {
    const real = realPath(path);
    if (isWithin(this.#private, real)) {
      throw new OperatorError(`${path} belongs to the data directory, which contains secrets`, undefined, 2);
    }
    const stat = statSync(real);
    if (stat.isDirectory()) {
      this.#walk(path, real, "");
      return;
    }
    if (!stat.isFile()) throw new OperatorError(`${path} is neither a file nor a folder`, undefined, 2);
    const type = this.#options.type ?? typeOf(path);
    if (type === undefined) {
      throw new OperatorError(
        `${path}: its type can't be told from its name (${EXTENSIONS.join(" ")})`,
        "state its type, such as --type text/plain",
        2,
      );
    }
    this.#add({ path, real, type });
  }

  /** `below`: path within the given folder, ending in `/`. */
  #walk(path: string, real: string, below: string): void {
    if (real === this.#private) return;
    for (const entry of this.#entries(path, real)) {
      if (entry.name.startsWith(".") || entry.name === PASSED_BY) continue;
      const within = below + entry.name;
      if (this.#isExcluded(entry.name, within)) continue;
      const place = { path: join(path, entry.name), real: join(real, entry.name) };
      if (entry.isDirectory()) this.#walk(place.path, place.real, `${within}/`);
      else if (!this.#isIncluded(entry.name, within)) continue;
      else if (entry.isSymbolicLink()) this.#link(place.path, place.real);
      else if (entry.isFile()) this.#file(place.path, place.real);
    }
  }

  #entries(path: string, real: string): Dirent[] {
    try {
      return readdirSync(real, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
    } catch (error) {
      this.#failed.push({ path, reason: `the folder ${reasonOf(error)}` });
      return [];
    }
  }

  #file(path: string, real: string): void {
    const type = typeOf(path);
    if (type !== undefined) this.#add({ path, real, type });
    else {
      const ending = extname(path) || "without extension";
      this.#skipped.push({ path, reason: `its type is not supported: ${ending}`, ending });
    }
  }

  #link(path: string, link: string): void {
    const target = realOf(link);
    if (target === undefined) this.#skipped.push({ path, reason: "a broken link" });
    else if (!this.#roots.some((root) => isWithin(root, target))) {
      this.#skipped.push({ path, reason: "a link that leads out of the folder" });
    }
  }

  #add(file: DocumentFile): void {
    if (!this.#files.has(file.real)) this.#files.set(file.real, file);
  }
}

type PathTest = (name: string, path: string) => boolean;

function pathTest(patterns: readonly string[]): PathTest {
  const tests = patterns.map((pattern) => {
    const glob = new Bun.Glob(pattern.replace(/^\.\//, "").replace(/\/$/, ""));
    const whole = glob.match.bind(glob);
    return pattern.replace(/\/$/, "").includes("/")
      ? (_: string, path: string) => whole(path)
      : (name: string) => whole(name);
  });
  return (name, path) => tests.some((test) => test(name, path));
}

function typeOf(path: string): ContentType | undefined {
  return TYPES[extname(basename(path)).toLowerCase()];
}

function isWithin(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    throw new OperatorError(`${path} ${reasonOf(error)}`, undefined, 2);
  }
}

/** Why the system refuses access to a file or folder, to complete a sentence. */
export function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (code === "ENOENT" || code === "ENOTDIR") return "does not exist";
  if (code === "EACCES" || code === "EPERM") return "cannot be read by this user";
  return `can't be read: ${error instanceof Error ? error.message : String(error)}`;
}
