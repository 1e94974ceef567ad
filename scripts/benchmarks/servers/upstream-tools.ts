/** The tools of these benchmarks' upstream MCP server, such as a customer service desk might have. */
import { join } from "node:path";

const VERBS = [
  ["list", "Lists", "in the order of their last change"],
  ["search", "Searches", "by the words in their titles, texts and comments"],
  ["get", "Reads", "with everything that was ever noted about them"],
  ["create", "Creates", "and tells those who watch the queue"],
  ["update", "Changes", "and keeps what stood there before in their history"],
  ["close", "Closes", "with a reason that the customer is shown"],
  ["reopen", "Opens again", "and puts them at the front of their queue"],
  ["assign", "Assigns", "to a member of the team who is on duty"],
  ["label", "Labels", "so that reports count them under that heading"],
  ["comment_on", "Comments on", "visible to the team, and not to the customer"],
  ["merge", "Merges", "into the oldest one, whose number stays"],
  ["link", "Links", "to others that have the same cause"],
  ["export", "Exports", "as a table, one row for each"],
  ["count", "Counts", "by status, team and week"],
] as const;
const NOUNS = [
  "tickets",
  "customers",
  "contracts",
  "invoices",
  "refunds",
  "orders",
  "shipments",
  "complaints",
  "calls",
  "meetings",
  "articles",
  "surveys",
  "devices",
  "outages",
] as const;

/** The tool that is called, and its arguments. */
export const CALLED = { name: "get_tickets", arguments: { id: "T-20481" } };
export const ANSWER = "T-20481 is open, with the billing team since Tuesday.";

/** 196 tools with about 300 bytes of description and schema each. */
export const UPSTREAM_TOOLS = VERBS.flatMap(([name, verb, how]) =>
  NOUNS.map((noun) => ({
    name: `${name}_${noun}`,
    description: `${verb} ${noun} of the service desk, ${how}.`,
    inputSchema: {
      type: "object",
      properties: {
        id: { type: "string", minLength: 1, maxLength: 64, description: `Number of one of the ${noun}.` },
        since: { type: "string", description: "RFC 3339." },
        limit: { type: "integer", minimum: 1, maximum: 100 },
      },
      required: ["id"],
    },
  })),
);

/** The command that starts the upstream over stdio. */
export const UPSTREAM_PROGRAM = {
  command: process.execPath,
  args: ["--no-env-file", join(import.meta.dir, "mcp-upstream.ts")],
};
