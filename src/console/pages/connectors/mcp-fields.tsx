import type { JSX } from "preact";
import { Select, TextArea, TextField } from "../../parts/field.tsx";
import type { McpDraft } from "./drafts.ts";
import { Pairs } from "./pairs.tsx";

interface McpFieldsProps {
  readonly draft: McpDraft;
  readonly change: (draft: McpDraft) => void;
  /** Errors by JSON pointer, from the server or this page. */
  readonly errors: ReadonlyMap<string, string>;
  /** Unfilled values of a pasted configuration, by JSON pointer or by `#key` of a row. */
  readonly open?: ReadonlyMap<string, string>;
}

/** Fields of an MCP connection. */
export function McpFields(props: McpFieldsProps): JSX.Element {
  return props.draft.type === "stdio" ? <ProgramFields {...props} /> : <RemoteFields {...props} />;
}

function ProgramFields({ draft, change, errors, open }: McpFieldsProps): JSX.Element {
  return (
    <>
      <TextField
        label="Command"
        required
        placeholder="npx"
        hint="A program on the server's machine: its name or full path."
        value={draft.command}
        change={(command) => change({ ...draft, command })}
        error={errors.get("/transport/command") ?? open?.get("/transport/command")}
      />
      <TextArea
        label="Arguments"
        isCode
        rows={3}
        placeholder={"-y\n@modelcontextprotocol/server-everything"}
        hint="One per line. Each line is one argument, including its spaces."
        value={draft.args}
        change={(args) => change({ ...draft, args })}
        error={under(errors, "/transport/args") ?? open?.get("/transport/args")}
      />
      <Pairs
        label="Environment"
        noun="Variable"
        mark="="
        hint="Its environment, in addition to PATH and HOME. You can paste NAME=value lines into a name field."
        pairs={draft.env}
        change={(env) => change({ ...draft, env })}
        path="/transport/env"
        errors={errors}
        open={open}
      />
    </>
  );
}

function RemoteFields({ draft, change, errors, open }: McpFieldsProps): JSX.Element {
  return (
    <>
      <Select
        label="Transport"
        value={draft.type}
        options={[
          ["http", "Streamable HTTP"],
          ["sse", "HTTP+SSE (older servers)"],
        ]}
        change={(type) => change({ ...draft, type: type === "sse" ? "sse" : "http" })}
        error={errors.get("/transport/type")}
      />
      <TextField
        label="URL"
        type="url"
        required
        placeholder="https://mcp.example.com/mcp"
        value={draft.url}
        change={(url) => change({ ...draft, url })}
        error={errors.get("/transport/url") ?? open?.get("/transport/url")}
      />
      <Pairs
        label="Headers"
        noun="Header"
        mark=":"
        hint="Sent with each request, such as Authorization. You can paste Name: value lines into a name field."
        pairs={draft.headers}
        change={(headers) => change({ ...draft, headers })}
        path="/transport/headers"
        errors={errors}
        open={open}
      />
    </>
  );
}

/** The error of a field or of one of its items. */
function under(errors: ReadonlyMap<string, string>, path: string): string | undefined {
  const found = [...errors].filter(([at]) => at === path || at.startsWith(`${path}/`));
  if (found.length === 0) return undefined;
  return found
    .map(([at, message]) => {
      const index = at.slice(path.length + 1);
      return /^\d+$/.test(index) ? `line ${Number(index) + 1} ${message}` : message;
    })
    .join("; ");
}
