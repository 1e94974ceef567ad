import { type Dirent, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, extname, join, sep } from "node:path";
import { OperatorError } from "../../base/errors.ts";
import type { ContentType } from "../../vault/read/document.ts";

/** What a file is, by the end of its name. */
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

/** Folders that hold what others wrote. Hidden ones are passed by as well. */
const PASSED_BY = "node_modules";

export interface FoundFile {
  /** As it is shown: below the path that was given. */
  readonly path: string;
  /** Absolute, without links: the same file is the same document, however it was named. */
  readonly real: string;
  readonly type: string;
}

/** A file that is not sent, and why. */
export interface LeftOut {
  readonly path: string;
  readonly reason: string;
  /** The end of its name, where that alone is why: of such files there may be many. */
  readonly ending?: string;
}

export interface Found {
  readonly files: readonly FoundFile[];
  readonly skipped: readonly LeftOut[];
  readonly failed: readonly LeftOut[];
}

export interface FindOptions {
  /** Of the files in folders only these; a pattern without `/` is held against the name alone. */
  readonly include?: readonly string[];
  /** Neither these files nor folders. */
  readonly exclude?: readonly string[];
  /** The media type of the files that are named themselves, whatever their names say. */
  readonly type?: string;
  /** A folder that is never read: the data directory, whose files hold secrets. */
  readonly private: string;
}

/**
 * The files that the paths name, in the order given, those of a folder sorted, none twice. Links inside of a folder are
 * not followed: what they lead to is found where it lies, or lies outside and is left out.
 * @throws OperatorError for a path that is not there, or a file of a type that can't be told
 */
export function findFiles(paths: readonly string[], options: FindOptions): Found {
  const search = new FileSearch(paths, options);
  for (const path of paths) search.take(path);
  return search.found();
}

class FileSearch {
  readonly #files = new Map<string, FoundFile>();
  readonly #skipped: LeftOut[] = [];
  readonly #failed: LeftOut[] = [];
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

  found(): Found {
    return { files: [...this.#files.values()], skipped: this.#skipped, failed: this.#failed };
  }

  /** A path as it was given. */
  take(path: string): void {
    const real = realPath(path);
    if (isWithin(this.#private, real)) {
      throw new OperatorError(`${path} belongs to the data directory, which holds secrets`, undefined, 2);
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
        `${path}: what is in it can't be told from its name (${EXTENSIONS.join(" ")})`,
        "say it with --type, such as --type text/plain",
        2,
      );
    }
    this.#add({ path, real, type });
  }

  /** `below`: where in the folder that was named, with `/` and at its end too. */
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
      this.#skipped.push({ path, reason: `its type is not read: ${ending}`, ending });
    }
  }

  #link(path: string, link: string): void {
    const target = realOf(link);
    if (target === undefined) this.#skipped.push({ path, reason: "a link that leads nowhere" });
    else if (!this.#roots.some((root) => isWithin(root, target))) {
      this.#skipped.push({ path, reason: "a link that leads out of the folder" });
    }
  }

  #add(file: FoundFile): void {
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

/** Why the system does not give a file or folder, as the rest of a sentence about it. */
export function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (code === "ENOENT" || code === "ENOTDIR") return "is not there";
  if (code === "EACCES" || code === "EPERM") return "may not be read";
  return `can't be read: ${error instanceof Error ? error.message : String(error)}`;
}
