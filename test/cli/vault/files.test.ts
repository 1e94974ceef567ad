import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OperatorError } from "../../../src/base/errors.ts";
import { contentOf, readableName } from "../../../src/cli/vault/content.ts";
import { type FindOptions, findFiles } from "../../../src/cli/vault/files.ts";
import { tempDir } from "../../support/process.ts";

/** The user `nobody`, on every system. */
const NOBODY = 65_534;
const place = tempDir();
const at = (path: string) => join(place.path, path);

function put(path: string, text = "x"): void {
  mkdirSync(join(at(path), ".."), { recursive: true });
  writeFileSync(at(path), text);
}

beforeAll(() => {
  for (const path of [
    "docs/b.md",
    "docs/a.TXT",
    "docs/sub/c.html",
    "docs/sub/deep/d.pdf",
    "docs/drafts/e.md",
    "docs/.hidden/f.md",
    "docs/.g.md",
    "docs/node_modules/h/README.md",
    "docs/logo.png",
    "docs/Makefile",
    "docs/data/server.json",
    "docs/data/notes/n.md",
    "outside/o.md",
    "docs.txt",
  ]) {
    put(path);
  }
  symlinkSync(at("outside"), at("docs/out"));
  symlinkSync(at("outside/o.md"), at("docs/out.md"));
  symlinkSync(at("docs/b.md"), at("docs/inside.md"));
  symlinkSync(at("docs"), at("docs/sub/loop"));
  symlinkSync(at("nowhere"), at("docs/broken.md"));
  symlinkSync(at("docs"), at("named"));
  symlinkSync(at("docs/data/server.json"), at("secret.json"));
});

afterAll(() => place.remove());

function find(paths: readonly string[], options: Partial<FindOptions> = {}) {
  const found = findFiles(paths.map(at), { private: at("docs/data"), ...options });
  const short = (path: string) => path.replace(`${place.path}/`, "");
  return {
    files: found.files.map((file) => short(file.path)),
    skipped: Object.fromEntries(found.skipped.map(({ path, reason }) => [short(path), reason])),
    failed: found.failed,
    types: found.files.map((file) => file.type),
  };
}

const ALL = ["docs/a.TXT", "docs/b.md", "docs/drafts/e.md", "docs/sub/c.html", "docs/sub/deep/d.pdf"];

describe("the files of a folder", () => {
  test("are sorted, and of readable types; hidden ones, node_modules and the data directory are excluded", () => {
    const { files, types } = find(["docs"]);
    expect(files).toEqual(ALL);
    expect(types).toEqual(["text/plain", "text/markdown", "text/markdown", "text/html", "application/pdf"]);
  });

  test("of other types are skipped, and so are links that lead outside or nowhere", () => {
    expect(find(["docs"]).skipped).toEqual({
      "docs/Makefile": "its type is not supported: without extension",
      "docs/broken.md": "a broken link",
      "docs/logo.png": "its type is not supported: .png",
      "docs/out": "a link that leads out of the folder",
      "docs/out.md": "a link that leads out of the folder",
    });
  });

  test("are found below a link that is named directly, and none twice", () => {
    expect(find(["named"]).files).toEqual(ALL.map((path) => path.replace("docs", "named")));
    expect(find(["docs/b.md", "docs", "named", "docs/sub/../b.md"]).files.toSorted()).toEqual(ALL);
  });

  test.each<[string, Partial<FindOptions>, string[]]>([
    ["a name", { include: ["*.md"] }, ["docs/b.md", "docs/drafts/e.md"]],
    ["several", { include: ["*.md", "*.pdf"] }, ["docs/b.md", "docs/drafts/e.md", "docs/sub/deep/d.pdf"]],
    ["a path", { include: ["sub/**"] }, ["docs/sub/c.html", "docs/sub/deep/d.pdf"]],
    ["a file not", { exclude: ["b.*"] }, ALL.filter((path) => path !== "docs/b.md")],
    ["a folder not", { exclude: ["drafts", "sub/deep/"] }, ["docs/a.TXT", "docs/b.md", "docs/sub/c.html"]],
    ["both", { include: ["*.md"], exclude: ["drafts"] }, ["docs/b.md"]],
  ])("are chosen by %s", (_, options, files) => {
    expect(find(["docs"], options).files).toEqual(files);
  });

  test("that may not be read are reported, and the others found", () => {
    put("closed/in/a.md");
    put("closed/b.md");
    // The test may run as root, which can read everything, so the search runs as `nobody`.
    const isRoot = process.geteuid?.() === 0;
    for (const path of ["", "closed"]) chmodSync(at(path), 0o755);
    chmodSync(at("closed/in"), 0);
    if (isRoot) process.seteuid?.(NOBODY);
    const found = find(["closed"]);
    if (isRoot) process.seteuid?.(0);
    chmodSync(at("closed/in"), 0o700);
    expect(found.files).toEqual(["closed/b.md"]);
    expect(found.failed).toEqual([
      { path: at("closed/in"), reason: "the folder cannot be read by this user" },
    ]);
  });
});

describe("a named path", () => {
  test("is accepted even if hidden or excluded, with the type of --type if given", () => {
    expect(find(["docs/.g.md"], { exclude: ["*.md"] }).files).toEqual(["docs/.g.md"]);
    expect(find(["docs/.hidden"]).files).toEqual(["docs/.hidden/f.md"]);
    expect(find(["docs/Makefile", "docs/sub"], { type: "text/plain" }).types).toEqual([
      "text/plain",
      "text/html",
      "application/pdf",
    ]);
  });

  test.each([
    ["that does not exist", "nowhere", "nowhere does not exist"],
    ["of an unknown type", "docs/logo.png", "--type"],
    ["that is the data directory", "docs/data", "contains secrets"],
    ["in the data directory", "docs/data/server.json", "contains secrets"],
    ["that leads into the data directory", "secret.json", "contains secrets"],
  ])("%s is wrong usage", (_, path, message) => {
    const refused = (() => {
      try {
        return find([path]);
      } catch (error) {
        return error as OperatorError;
      }
    })();
    expect(refused).toBeInstanceOf(OperatorError);
    expect(refused).toMatchObject({ exitCode: 2 });
    const { message: said, hint = "" } = refused as OperatorError;
    expect(`${said} ${hint}`).toContain(message);
  });
});

describe("a file is sent", () => {
  const content = (name: string, text: string | Uint8Array, type: string) =>
    contentOf(name, typeof text === "string" ? new TextEncoder().encode(text) : text, type);
  const hashOf = (data: string | Uint8Array) => new Bun.CryptoHasher("sha256").update(data).digest("hex");

  test("as text if it is UTF-8, without its byte order mark, and hashed like that", () => {
    const { body, hash } = content("a.txt", "\uFEFFGrüße", "text/plain");
    expect(body).toEqual({ text: "Grüße", content_type: "text/plain" });
    expect(hash).toBe(hashOf("Grüße"));
  });

  test.each([
    ["not UTF-8", Uint8Array.of(99, 97, 102, 0xe9), "text/plain"],
    ["of a type with a charset", Uint8Array.of(99, 97), "text/plain; charset=windows-1252"],
    ["a PDF", new TextEncoder().encode("%PDF-1.7"), "application/pdf"],
  ])("as bytes if it is %s", (_, bytes, type) => {
    const { body, hash } = content("a", bytes, type);
    expect(body).toEqual({ content_base64: Buffer.from(bytes).toString("base64"), content_type: type });
    expect(hash).toBe(hashOf(bytes));
  });

  test.each([
    [
      "the first heading of Markdown",
      "a.md",
      "## Not this\n\n# This one\n\n# Nor this",
      "text/markdown",
      "This one",
    ],
    ["its front matter", "a.md", "---\ntitle: Stated\n---\n# Heading", "text/markdown", "Stated"],
    ["no heading inside code", "some-notes.md", "```\n# no\n```", "text/markdown", "Some notes"],
    [
      "the title of HTML",
      "a.html",
      "<title>Tea &amp;\n biscuits</title><h1>x</h1>",
      "text/html",
      "Tea & biscuits",
    ],
    ["the name, of text", "opening_hours-2026.txt", "# Not a heading", "text/plain", "Opening hours 2026"],
    ["the name, of a broken page", "a-b.html", "<<<", "text/html", "A b"],
  ])("with the title %s", (_, name, text, type, title) => {
    expect(content(name, text, type).title).toBe(title);
  });

  test.each([
    ["Holiday rules.docx", "Holiday rules"],
    ["README.md", "README"],
    ["v1.2-notes.txt", "V1.2 notes"],
    ["___.md", "___.md"],
    [".env.txt", ".env"],
    ["日本語.md", "日本語"],
  ])("%s reads %s", (name, title) => {
    expect(readableName(name)).toBe(title);
  });
});
