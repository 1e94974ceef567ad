import { basename, join } from "node:path";
import page from "../../console/index.html";

/** One file of the console, as a browser gets it. */
export interface ConsoleFile {
  /** Its name alone. That of every file but the page itself holds a hash of its content. */
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export interface ConsoleBundle {
  readonly page: ConsoleFile;
  readonly files: readonly ConsoleFile[];
}

const SOURCE = join(import.meta.dir, "..", "..", "console", "index.html");

/**
 * The console's files: in the built program those that were made with it, where the sources run made of them now, which
 * takes some tenths of a second.
 * @throws Error with what the bundler says
 */
export async function loadConsole(): Promise<ConsoleBundle> {
  // What an import of a page is says where its parts lie inside of the program; it says nothing where none was built.
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
