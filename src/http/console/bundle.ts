import { basename, join } from "node:path";
import page from "../../console/index.html";

/** One file of the console, as a browser gets it. */
export interface ConsoleFile {
  /** The file name without a directory. Every name except the page's contains a hash of the content. */
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export interface ConsoleBundle {
  readonly page: ConsoleFile;
  readonly files: readonly ConsoleFile[];
}

const SOURCE = join(import.meta.dir, "..", "..", "console", "index.html");

/**
 * The console's files. The compiled program contains them. When run from source, they are built now, which takes a
 * few tenths of a second.
 * @throws Error with the bundler's message
 */
export async function loadConsole(): Promise<ConsoleBundle> {
  // Importing a page returns the paths of its files inside the compiled program, and none when run from source.
  const files = await (page.files ? builtFiles(page.files) : build());
  const html = files.find(({ name }) => name.endsWith(".html"));
  if (!html) throw new Error("the console has no page");
  return { page: html, files: files.filter((file) => file !== html) };
}

function builtFiles(files: readonly { readonly path: string }[]): Promise<ConsoleFile[]> {
  return Promise.all(
    files.map(async ({ path }) => ({ name: basename(path), bytes: await Bun.file(path).bytes() })),
  );
}

async function build(): Promise<ConsoleFile[]> {
  const built = await Bun.build({ entrypoints: [SOURCE], splitting: true, minify: true });
  return Promise.all(
    built.outputs.map(async (output) => ({
      name: basename(output.path),
      bytes: new Uint8Array(await output.arrayBuffer()),
    })),
  );
}
