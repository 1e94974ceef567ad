/** How the pages of connectors look, in both colour schemes and at both widths, and whether they are accessible. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { axe } from "../../support/axe.ts";
import { noSidewaysScroll } from "../../support/browser.ts";
import { type ScriptedMcp, startScriptedMcp } from "../../support/scripted-mcp.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(90_000);
const LONG = "a_word_that_is_so_long_that_it_does_not_fit_into_any_column_of_a_telephone_held_upright";
let stage: TestConsole;
let up: ScriptedMcp;

beforeAll(async () => {
  up = startScriptedMcp(
    Array.from({ length: 15 }, (_, index) => ({
      name: `${LONG.slice(0, 60)}_${index}`,
      description: `${LONG} ${"It says much of itself. ".repeat(20)}`,
      inputSchema: {
        type: "object",
        properties: { [LONG]: { type: "string", description: LONG, pattern: LONG }, list: { type: "array" } },
        required: [LONG],
      },
      annotations: { destructiveHint: index % 2 === 0 },
    })),
  );
  stage = await openConsole();
  const transport = { type: "http", url: up.url };
  for (const name of ["one", "two", "three", "four", "five", "six_and_twenty_characters"].map((each) =>
    each.slice(0, 24),
  )) {
    const body = { name, kind: "mcp", scopes: ["*", LONG], transport };
    expect((await stage.gateway.call("POST", "/v1/connectors", { body })).status).toBe(201);
  }
  const gone = { name: "gone", kind: "mcp", transport: { type: "http", url: "http://127.0.0.1:9/mcp" } };
  expect((await stage.gateway.call("POST", "/v1/connectors", { body: gone })).body.status).toBe(
    "unreachable",
  );
});
afterAll(async () => {
  await stage.close();
  await up.close();
});

const PAGES = [
  ["/connectors", "gone"],
  ["/connectors/one", "MCP server"],
  [`/connectors/one?tool=${LONG.slice(0, 60)}_3`, "Try this tool"],
  ["/connectors/nobody", "There is no connector with this name"],
] as const;
const FORMS = ["program", "server", "openapi", "paste"] as const;

test.each([
  ["light", 1_440],
  ["dark", 1_440],
  ["light", 390],
  ["dark", 390],
] as const)(
  "%s, %d pixels wide: axe finds nothing serious, nothing is cut off, and the browser reports no error",
  async (scheme, width) => {
    const { page, complaints, context } = await stage.open("/connectors", { scheme, width });
    for (const [path, heading] of PAGES) {
      await page.goto(stage.at(path));
      await page.getByRole("heading", { name: heading, exact: true }).waitFor();
      expect(await axe(page)).toEqual([]);
      await noSidewaysScroll(page);
    }
    for (const kind of FORMS) {
      await page.goto(stage.at(`/connectors/-/new?kind=${kind}`));
      await page.getByRole("form").waitFor();
      if (kind === "openapi") await page.getByLabel("Authentication").selectOption("header");
      expect(await axe(page)).toEqual([]);
      await noSidewaysScroll(page);
    }
    const server = { command: LONG, args: [LONG], env: { [LONG.toUpperCase()]: "<your token>" } };
    await page
      .getByRole("textbox", { name: "Configuration" })
      .fill(JSON.stringify({ [LONG]: server, b: server }));
    await page.getByRole("button", { name: "Review" }).click();
    await page.getByRole("heading", { name: "2 servers found" }).waitFor();
    expect(await axe(page)).toEqual([]);
    await noSidewaysScroll(page);
    expect(complaints).toEqual([]);
    await context.close();
  },
);
