/** The scripts of `gatehouse completion`, in the shells themselves. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Verb, verbsOf } from "../../src/cli/completion/verbs.ts";
import { createProgram } from "../../src/cli/program.ts";
import { type Desk, openDesk } from "./support.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;
type Shell = (typeof SHELLS)[number];

let desk: Desk;
let verbs: readonly Verb[];
beforeAll(async () => {
  desk = openDesk();
  verbs = verbsOf(await createProgram([]));
  for (const shell of SHELLS) {
    writeFileSync(join(desk.cwd, shell), await desk.out(["completion", shell]));
  }
});
afterAll(() => desk.clear());

/** What each shell offers for the words typed so far, the last of which is not finished. One line for each offer. */
const ASK: Readonly<Record<Shell, (line: string) => string>> = {
  bash: (
    line,
  ) => `source ./bash; COMP_WORDS=(${words(line)}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _gatehouse
    printf '%s\\n' "\${COMPREPLY[@]}"`,
  // zsh's own functions need a terminal, so these show what they would be given.
  zsh: (line) => `compdef() { :; }; _files() { print FILES }; compadd() { shift; print -l -- "$@" }
    _describe() { local each; for each in "\${(@P)2}"; do print -- "\${each%%:*}"; done }
    source ./zsh; words=(${words(line)}); CURRENT=$#words; PREFIX=$words[-1]; _gatehouse`,
  fish: (line) => `source ./fish; complete -C '${line}'`,
};

function words(line: string): string {
  return line
    .split(" ")
    .map((word) => `'${word}'`)
    .join(" ");
}

async function offered(shell: Shell, line: string): Promise<string[]> {
  const args = shell === "zsh" ? ["-f", "-c"] : shell === "fish" ? ["--no-config", "-c"] : ["--norc", "-c"];
  const asked = Bun.spawn([shell, ...args, ASK[shell](line)], {
    cwd: desk.cwd,
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, error] = await Promise.all([
    new Response(asked.stdout).text(),
    new Response(asked.stderr).text(),
  ]);
  expect({ code: await asked.exited, error }).toEqual({ code: 0, error: "" });
  return out
    .split("\n")
    .map((offer) => offer.split("\t")[0] ?? "")
    .filter((offer) => offer !== "");
}

const verb = (...path: string[]) => verbs.find(({ words: known }) => known.join(" ") === path.join(" "));
const nextOf = (...path: string[]) => verb(...path)?.next.map(({ word }) => word) ?? [];
const longOf = (...path: string[]) =>
  verb(...path)?.options.flatMap(({ flags }) => flags.filter((flag) => flag.startsWith("--"))) ?? [];

test("the tree of commands is that of the program", () => {
  expect(nextOf()).toContain("backup");
  expect(nextOf("token")).toEqual(["create", "list", "rotate", "revoke", "secret"]);
  expect(longOf("token", "create")).toContain("--name");
  expect(new Set(verbs.map(({ words: path }) => path.join(" "))).size).toBe(verbs.length);
});

/** They do not read, or print in a form of their own. */
const WITHOUT_JSON = [
  ...["serve", "mcp", "reseal", "completion", "connector remove", "ledger export"],
  ...["token rotate", "token revoke", "token secret"],
];

test("every other command takes --json", () => {
  const ends = verbs.filter(({ next }) => next.length === 0);
  const without = ends.filter(({ options }) => !options.some(({ flags }) => flags.includes("--json")));
  expect(without.map(({ words: path }) => path.join(" ")).sort()).toEqual(WITHOUT_JSON.toSorted());
});

describe.each(SHELLS)("%s", (shell) => {
  const has = Bun.which(shell) !== null;
  if (!has) console.warn(`COMPLETIONS OF ${shell.toUpperCase()} ARE NOT TESTED: there is no ${shell}`);

  test.skipIf(!has)("offers the commands", async () => {
    const offers = await offered(shell, "gatehouse ");
    expect(nextOf().filter((word) => !offers.includes(word))).toEqual([]);
  });

  test.skipIf(!has)("offers the commands of a group, also after options", async () => {
    for (const line of ["gatehouse token ", "gatehouse --data x token ", "gatehouse --data backup token "]) {
      const offers = await offered(shell, line);
      expect(nextOf("token").filter((word) => !offers.includes(word))).toEqual([]);
      expect(offers).not.toContain("backup");
    }
  });

  test.skipIf(!has)("offers the options of a command", async () => {
    const offers = await offered(shell, "gatehouse token create --");
    expect(longOf("token", "create").filter((flag) => !offers.includes(flag))).toEqual([]);
  });

  test.skipIf(!has)("offers the values of an option that has few", async () => {
    const offers = await offered(shell, "gatehouse ledger export --format ");
    expect(offers.sort()).toEqual(["article14", "csv", "json", "ndjson"]);
  });
});

test("of another shell is refused, and the known ones are named", async () => {
  const { code, stdout, stderr } = await desk.cli(["completion", "tcsh"]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain("Allowed choices are bash, zsh, fish");
});

test.each([
  ["stauts", "status"],
  ["bakcup", "backup"],
  ["doctr", "doctor"],
  ["ledgr", "ledger"],
])("%s, which is mistyped, is answered with %s", async (typed, meant) => {
  const { code, stderr } = await desk.cli([typed]);
  expect(code).toBe(2);
  expect(stderr).toContain(`(Did you mean ${meant}?)`);
});

test.each([
  [["ledger", "verfy"], "verify"],
  [["backup", "x", "--with-key"], "--with-keys"],
  [["serve", "--lisen", "x"], "--listen"],
])("%j, which is mistyped, is answered with %s", async (args, meant) => {
  const { code, stderr } = await desk.cli(args);
  expect(code).toBe(2);
  expect(stderr).toContain(`(Did you mean ${meant}?)`);
});
