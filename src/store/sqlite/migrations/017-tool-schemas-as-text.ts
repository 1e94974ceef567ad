import type { Migration } from "../migrate.ts";

/**
 * Tools of connectors: their schemas and bindings become JSON strings within the JSON of `tools`, so reading a
 * connector parses none of them. In a merge patch (RFC 7396), null removes a field.
 */
export const TOOL_SCHEMAS_AS_TEXT: Migration = {
  name: "schemas of connectors' tools as text",
  sql: `
UPDATE connectors SET tools = (
  SELECT json_group_array(json_patch(tool.value, json_object(
    'inputSchema', NULL, 'outputSchema', NULL, 'binding', NULL,
    'inputSchemaJson', (tool.value -> '$.inputSchema') || '',
    'outputSchemaJson', (tool.value -> '$.outputSchema') || '',
    'bindingJson', (tool.value -> '$.binding') || ''
  )) ORDER BY tool.key)
  FROM json_each(connectors.tools) AS tool
);
`,
};
