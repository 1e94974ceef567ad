/** The migration that turns the schemas of connectors' tools into text changes nothing else about the tools. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { expandTool, type KeptTool } from "../../src/connectors/tools/kept-tool.ts";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { TOOL_SCHEMAS_AS_TEXT } from "../../src/store/sqlite/migrations/017-tool-schemas-as-text.ts";
import { MIGRATIONS } from "../../src/store/sqlite/migrations/index.ts";

const TOOLS = [
  {
    name: "all",
    title: "All",
    description: 'Quotes " and \\ and \u2028, a lone \ud800',
    inputSchema: {
      type: "object",
      properties: { binding: { default: null }, "$.inputSchema": { enum: [1e21, 0.1, -0, "é"] } },
    },
    outputSchema: { type: "object", a: null },
    annotations: { readOnlyHint: true },
    destructive: false,
    path: ["gw_1"],
    binding: { name: "upstream's", server: null, list: [[], {}] },
  },
  { name: "least", description: "", inputSchema: { type: "object" }, destructive: true },
];

test("tools stored by an earlier version are the same, in order, with schemas as text", () => {
  const database = new Database(":memory:");
  const step = MIGRATIONS.indexOf(TOOL_SCHEMAS_AS_TEXT);
  migrate(database, MIGRATIONS.slice(0, step));
  const many = Array.from({ length: 12 }, (_, at) => ({ ...TOOLS[1], name: `t${at}` }));
  const stored = [[], TOOLS, many];
  for (const [at, tools] of stored.entries()) {
    database.run(
      `INSERT INTO connectors (workspace_id, name, kind, definition, scopes, status, error, tools, authorised_by, authorised_at)
       VALUES (1, ?, 'mcp', x'00', '["*"]', 'ready', NULL, ?, 'tests', 0)`,
      [`c${at}`, JSON.stringify(tools)],
    );
  }
  migrate(database, MIGRATIONS.slice(0, step + 1));
  const rows = database.query<{ tools: string }, []>("SELECT tools FROM connectors ORDER BY id").all();
  const kept = rows.map(({ tools }) => JSON.parse(tools) as KeptTool[]);
  expect(kept.map((tools) => tools.map(expandTool))).toEqual(JSON.parse(JSON.stringify(stored)));
  const [, [all] = []] = kept;
  expect(all).toMatchObject({
    inputSchemaJson: JSON.stringify(TOOLS[0]?.inputSchema),
    bindingJson: JSON.stringify(TOOLS[0]?.binding),
  });
  expect(Object.keys(all ?? {})).not.toContain("inputSchema");
});
