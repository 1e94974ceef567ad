/** The documents agree with the repository: paths, routes, sizes, dependencies. docs.test.ts runs their commands. */
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { dependencies, devDependencies } from "../package.json";
import { openDesk } from "./cli/support.ts";

const root = join(import.meta.dir, "..");

const PAGES = [
  ...readdirSync(root).filter((name) => name.endsWith(".md")),
  ...[...new Bun.Glob("{docs,scripts,src}/**/*.md").scanSync(root)]
    .filter((path) => !path.includes("node_modules"))
    .sort(),
];
/** The changelog names files as they were. */
const PRESENT = PAGES.filter((path) => path !== "CHANGELOG.md");
const LIMITS: Readonly<Record<string, number>> = { "README.md": 8_000, "src/README.md": 10_000 };
/** Rooms with their own decisions. */
const DESIGNED = ["ledger", "store", "vault", "tasks", "connectors"];

function page(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

/**
 * Paths of this repository that a page names, relative to its root. Those without a first folder are below `src`, as
 * in the map. Programs on the page itself are left out.
 */
function pathsIn(text: string): string[] {
  const spans = [...text.matchAll(/`([^`\n]+)`/g)].map(([, span = ""]) => span);
  const programs = new Set([...text.matchAll(/^\/\/ ([\w-]+\.ts)$/gm)].map(([, name]) => name));
  const map = [...text.matchAll(/^([\w-]+(?:\/|\.ts)) {2,}\S/gm)].map(([, entry = ""]) => entry);
  const named = [...spans, ...map].filter((span) => !programs.has(span));
  return named.filter((span) =>
    /^(?:(?:src|test|scripts|docs)\/[\w./-]+|(?:[\w-]+\/)*[\w.-]+\.tsx?|(?:[\w-]+\/)+)$/.test(span),
  );
}

function isThere(path: string): boolean {
  return /^(?:src|test|scripts|docs)\//.test(path)
    ? existsSync(join(root, path))
    : existsSync(join(root, "src", path));
}

function listed(path: string): string[][] {
  return [...page(path).matchAll(/^\| `([^`]+)` \|.*\| ([^|]+) \|$/gm)].map(([, name = "", licence = ""]) => [
    name,
    licence,
  ]);
}

describe("a page", () => {
  test.each(PRESENT)("%s names only existing files and folders of the repository", (path) => {
    expect(pathsIn(page(path)).filter((named) => !isThere(named))).toEqual([]);
  });

  test.each(PAGES)("%s links only to existing files and headings", (path) => {
    const links = [...page(path).matchAll(/\]\((?!https?:)([^)\s]+)\)/g)].map(([, link = ""]) => link);
    expect(links.filter((link) => !isLinkGood(path, link))).toEqual([]);
  });

  test.each(Object.entries(LIMITS))("%s has at most %d bytes", (path, bytes) => {
    expect(statSync(join(root, path)).size).toBeLessThanOrEqual(bytes);
  });

  test("a path that does not exist is found", () => {
    expect(pathsIn("`src/gone.ts`, `ledger/gone.ts`, `docs/gone.md`, `gone/`\n\ngone.ts   a room\n")).toEqual(
      ["src/gone.ts", "ledger/gone.ts", "docs/gone.md", "gone/", "gone.ts"],
    );
    expect(pathsIn("`POST /v1/tasks`, `legal/contracts`, `gatehouse-data/admin.token`, `time.now`")).toEqual(
      [],
    );
  });
});

test("the map lists every folder and file directly below src", () => {
  const [, map = ""] = page("src/README.md").split("```");
  const rooms = pathsIn(map).map((entry) => entry.replace(/\/$/, ""));
  expect(rooms.sort()).toEqual(
    readdirSync(join(root, "src"))
      .filter((name) => !name.endsWith(".md"))
      .sort(),
  );
});

test.each(DESIGNED)("src/%s has its decisions next to its code", (room) => {
  expect(existsSync(join(root, "src", room, "DESIGN.md"))).toBe(true);
});

test.each(PRESENT)("everything that %s names in a file is in that file", (path) => {
  const named = [...page(path).matchAll(/`(\w+)`,? (?:in|of) `(src\/[\w./-]+\.tsx?)`/g)];
  const missing = named.filter(([, name = "", file = ""]) => !page(file).includes(name));
  expect(missing.map(([text]) => text)).toEqual([]);
});

test("every DESIGN.md is linked from the map", () => {
  const map = page("src/README.md");
  const designs = PAGES.filter((path) => path.endsWith("/DESIGN.md"));
  expect(designs.length).toBeGreaterThanOrEqual(DESIGNED.length);
  expect(designs.filter((path) => !map.includes(`(${path.slice("src/".length)})`))).toEqual([]);
});

test("docs/dependencies.md lists the packages of package.json with their licences, and no other", () => {
  const packages = Object.keys({ ...dependencies, ...devDependencies });
  const installed = packages.map((name) => {
    const manifest = join(root, "node_modules", name, "package.json");
    return [name, (JSON.parse(readFileSync(manifest, "utf8")) as { license: string }).license];
  });
  expect(listed("docs/dependencies.md").sort()).toEqual(installed.sort());
});

test("every route that a page names is served", async () => {
  const desk = openDesk();
  try {
    const server = await desk.serve();
    const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as {
      readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
    };
    const served = new Set(
      Object.entries(document.paths).flatMap(([path, methods]) => [
        shape(path),
        ...Object.keys(methods).map((method) => `${method.toUpperCase()} ${shape(path)}`),
      ]),
    );
    const named = PRESENT.flatMap((path) =>
      [...page(path).matchAll(/`((?:(?:GET|POST|PUT|PATCH|DELETE) )?\/v1\/[^\s`?]+)/g)].map(
        ([, route = ""]) => [path, shape(route)] as const,
      ),
    );
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter(([, route]) => !served.has(route))).toEqual([]);
  } finally {
    await desk.clear();
  }
});

/** A route with its parameters normalised: `:id`, `{id}` and `<connector>.<tool>`. */
function shape(route: string): string {
  return route.replaceAll(/:\w+|\{\w+\}|<[^/]*>/g, "*");
}

function isLinkGood(path: string, link: string): boolean {
  const [file = "", heading] = link.split("#");
  const target = file === "" ? path : join(dirname(path), file);
  if (!existsSync(join(root, target))) return false;
  if (heading === undefined) return true;
  const headings = [...page(target).matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) => anchor(title));
  return headings.includes(heading);
}

/** The anchor that GitHub makes for a heading. */
function anchor(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, "")
    .replaceAll(" ", "-");
}
